"""The decorator of functions in `functional`: their arguments can override them."""

from __future__ import annotations

from plugrad import overrides

overridable = overrides.overridable("plugrad.nn.functional")
