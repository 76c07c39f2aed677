"""Matrices of linear systems: must be square, and floating point or complex."""

from __future__ import annotations

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.tensor.base import TensorBase, sizes_of


def check_square(A: TensorBase, name: str) -> None:
    """RuntimeError unless `A` is a square matrix, or a batch of them, of floating point numbers of
    more than 16 bits."""
    check_square_shape(A, name)
    if A.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{A.dtype.scalar_name}"
        )
    if A.dtype.itemsize == 2:
        if name in ("linalg.solve", "linalg.det"):
            raise not_implemented("lu_cpu", A.dtype)
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype.scalar_name}")


def check_square_shape(A: TensorBase, name: str) -> None:
    """RuntimeError unless `A` is a square matrix, or a batch of them."""
    sizes = sizes_of(A)
    if len(sizes) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if sizes[-1] != sizes[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {sizes[-2]} by "
            f"{sizes[-1]} matrices"
        )


def solve(A: TensorBase, B: TensorBase) -> tuple[object, ...]:
    check_square(A, "linalg.solve")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    left, right = sizes_of(A), sizes_of(B)
    if left[-1] != right[-2]:
        raise RuntimeError(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B "
            f"({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})"
        )
    return (A, B)


def inv(A: TensorBase) -> tuple[object, ...]:
    check_square(A, "linalg.inv")
    return (A,)


def det(A: TensorBase) -> tuple[object, ...]:
    check_square(A, "linalg.det")
    return (A,)
