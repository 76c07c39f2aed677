"""Sizes that no memory can hold, for kernels whose results are much larger than their arguments."""

from plugrad.tensor.creation.allocation import check_memory

__all__ = ["check_memory"]
