"""For backends whose arrays can be spread over several devices: what is written stays in place."""

from __future__ import annotations

from plugrad.tensor.aliasing.placement import set_placement

__all__ = ["set_placement"]
