"""`plugrad.library`: operators and kernels defined at run time, as torch.library does it."""

from __future__ import annotations

# Interpreted: it only re-exports.
from plugrad.dispatch.library import Library, define, impl

__all__ = ["Library", "define", "impl"]
