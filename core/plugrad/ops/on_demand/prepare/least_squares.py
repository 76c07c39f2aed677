"""Matrices and right sides of least squares, checked in PyTorch's words."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Final

from plugrad.dtype import FLOATING
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes

_NAME: Final = "torch.linalg.lstsq"
_DRIVERS: Final = ("gels", "gelsy", "gelsd", "gelss")


def is_vector(A: TensorBase, b: TensorBase) -> bool:
    """Whether `b` is one right side for each matrix."""
    sizes = sizes_of(b)
    return len(sizes) == 1 or sizes == sizes_of(A)[:-1]


def check_arguments(A: TensorBase, b: TensorBase, driver: str | None) -> None:
    if A.dtype.category < FLOATING or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    rank, right_rank = len(sizes_of(A)), len(sizes_of(b))
    if rank < 2:
        raise RuntimeError(f"{_NAME}: input must have at least 2 dimensions.")
    if right_rank < 1:
        raise RuntimeError(f"{_NAME}: other must have at least 1 dimension.")
    if not 0 <= rank - right_rank <= 1:
        raise RuntimeError(
            f"{_NAME}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    if is_vector(A, b):
        if sizes_of(A)[-2] != sizes_of(b)[-1]:
            raise RuntimeError(f"{_NAME}: input.size(-2) should match other.size(-1)")
    elif sizes_of(A)[-2] != sizes_of(b)[-2]:
        raise RuntimeError(f"{_NAME}: input.size(-2) should match other.size(-2)")
    if A.dtype is not b.dtype:
        raise RuntimeError(
            f"{_NAME}: Expected input and other to have the same dtype, but got input's dtype "
            f"{A.dtype.scalar_name} and other's dtype {b.dtype.scalar_name}"
        )
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            f"{_NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )


def lstsq(A: TensorBase, B: TensorBase, rcond: float, driver: str) -> tuple[object, ...]:
    broadcast_shapes(sizes_of(A)[:-2], sizes_of(B)[:-2])
    return (A, B, rcond, driver)
