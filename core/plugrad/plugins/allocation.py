"""Checks sizes against memory, for kernels with results much larger than their arguments."""

from plugrad.tensor.creation.allocation import check_memory

__all__ = ["check_memory"]
