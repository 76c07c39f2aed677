"""The decorator of what `functional` shows: such a function can be taken over by its arguments."""

from __future__ import annotations

from plugrad import overrides

overridable = overrides.overridable("plugrad.nn.functional")
