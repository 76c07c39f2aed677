"""`plugrad_jax.jit`: a step of a plugrad program as one program of XLA."""

from __future__ import annotations

from plugrad_jax.capture.captured import CacheInfo, Captured, jit
from plugrad_jax.capture.errors import CaptureError

__all__ = ["CacheInfo", "CaptureError", "Captured", "jit"]
