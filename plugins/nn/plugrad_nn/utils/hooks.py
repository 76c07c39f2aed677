"""`plugrad.utils.hooks`: the handle that registering a hook returns."""

from __future__ import annotations

from plugrad.autograd.graph import RemovableHandle

__all__ = ["RemovableHandle"]
