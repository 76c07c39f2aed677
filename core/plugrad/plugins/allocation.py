"""Sizes that no memory can hold: for kernels that make much of little."""

from plugrad.tensor.creation.allocation import check_memory

__all__ = ["check_memory"]
