"""Matrices and right sides of triangular systems, checked in PyTorch's words."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.ops.on_demand.prepare.decompositions import check_kernel_dtype, check_matrix
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.promotion import to_dtype


def check_right_side(A: TensorBase, B: TensorBase, left: bool, name: str) -> None:
    """RuntimeError unless `B` has as many rows, or columns, as the square matrix `A`."""
    rows, columns = sizes_of(B)[-2:]
    n = sizes_of(A)[-1]
    if (rows if left else columns) != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({n}x{n} and {rows}x{columns})"
        )
    broadcast_shapes(sizes_of(A)[:-2], sizes_of(B)[:-2])


def solve_triangular(
    self: TensorBase, B: TensorBase, upper: bool, left: bool, unitriangular: bool
) -> tuple[object, ...]:
    name = "linalg.solve_triangular"
    check_square_shape(self, name)
    if len(sizes_of(B)) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if B.dtype.is_complex and not self.dtype.is_complex:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{self.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    check_right_side(self, B, left, name)
    check_kernel_dtype(self.dtype, "triangular_solve_cpu")
    return (self, to_dtype(B, self.dtype), upper, left, unitriangular)


def check_former(b: TensorBase, A: TensorBase, name: str, kernel: str) -> None:
    """The checks of `triangular_solve` and `cholesky_solve`."""
    for what, tensor in (("b", b), ("A" if name == "triangular_solve" else "u", A)):
        if len(sizes_of(tensor)) < 2:
            raise RuntimeError(
                f"{name}: Expected {what} to have at least 2 dimensions, but it has "
                f"{len(sizes_of(tensor))} dimensions instead"
                if name == "triangular_solve"
                else f"{name}: {what} should have at least 2 dimensions, but has "
                f"{len(sizes_of(tensor))} dimensions instead"
            )
    check_matrix(A, name)
    rows, columns = sizes_of(A)[-2:]
    if b.dtype is not A.dtype:
        raise RuntimeError(
            f"{name}: Expected b and A to have the same dtype, but found b of type "
            f"{b.dtype.scalar_name} and A of type {A.dtype.scalar_name} instead."
        )
    if rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )
    height, width = sizes_of(b)[-2:]
    if rows != height:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {columns} but each "
            f"b matrix is {height} by {width}"
        )
    check_kernel_dtype(A.dtype, kernel)
