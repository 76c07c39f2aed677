"""`plugrad.library`: operators and kernels defined at run time, as torch.library does it."""

from __future__ import annotations

from plugrad.library.library import Library, fallthrough_kernel
from plugrad.library.registration import define, impl

__all__ = ["Library", "define", "fallthrough_kernel", "impl"]
