"""Checks matrices to factorize by LU or LDL, and the arguments with their factors, with PyTorch's
messages."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.dtype import int32
from plugrad.ops.on_demand.prepare.decompositions import check_inexact, check_kernel_dtype
from plugrad.ops.on_demand.prepare.triangular_systems import check_right_side
from plugrad.ops.prepare.linear_systems import check_square, check_square_shape
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes


def lu_factor(A: TensorBase, pivot: bool) -> tuple[object, ...]:
    check_dimensions(A, "lu_factor")
    if not pivot and A.device.is_host:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    if 0 not in sizes_of(A):
        check_kernel_dtype(A.dtype, "lu_cpu")
    return (A, pivot)


def check_dimensions(A: TensorBase, name: str) -> None:
    if len(sizes_of(A)) < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(sizes_of(A))} "
            "instead"
        )


def check_pivots(pivots: TensorBase, name: str) -> None:
    if pivots.dtype is not int32:
        raise RuntimeError(
            f"{name}: LU_pivots is expected to be a contiguous tensor of plugrad.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by "
            "plugrad.linalg.lu_factor"
        )


def lu_solve(
    LU: TensorBase, pivots: TensorBase, B: TensorBase, left: bool, adjoint: bool
) -> tuple[object, ...]:
    name = "linalg.lu_solve"
    _check_factors("LU", LU, B, name)
    if pivots.dtype is not int32:
        raise RuntimeError(
            f"{name}: pivots should be a Tensor of scalar type plugrad.int32, but got "
            f"{pivots.dtype.scalar_name}"
        )
    check_square_shape(LU, name)
    check_right_side(LU, B, left, name)
    if (sizes_of(pivots) or (None,))[-1] != sizes_of(LU)[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    _check_pivots_shape("LU", LU, pivots, name)
    check_kernel_dtype(LU.dtype, "linalg.lu_solve_cpu")
    return (LU, pivots, B, left, adjoint)


def _check_factors(what: str, factors: TensorBase, B: TensorBase, name: str) -> None:
    check_square_shape(factors, name)
    check_inexact(factors, name)
    if factors.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected {what} and B to have the same dtype, but found {what} of type "
            f"{factors.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    if len(sizes_of(B)) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")


def _check_pivots_shape(what: str, factors: TensorBase, pivots: TensorBase, name: str) -> None:
    if sizes_of(pivots) != sizes_of(factors)[:-1]:
        raise RuntimeError(
            f"{name}: Expected {what}.shape[:-1] and pivots.shape to be the same, but got pivots "
            f"with shape {list(sizes_of(pivots))} instead"
        )


def slogdet(A: TensorBase) -> tuple[object, ...]:
    check_square(A, "linalg.slogdet")
    return (A,)


def ldl_factor(A: TensorBase, hermitian: bool) -> tuple[object, ...]:
    name = "linalg.ldl_factor_ex"
    check_square_shape(A, name)
    check_inexact(A, name)
    check_kernel_dtype(A.dtype, "ldl_factor_kernel_cpu")
    return (A, hermitian)


def ldl_solve(
    LD: TensorBase, pivots: TensorBase, B: TensorBase, hermitian: bool
) -> tuple[object, ...]:
    name = "linalg.ldl_solve"
    check_square_shape(LD, name)
    check_inexact(LD, name)
    if len(sizes_of(B)) < 2:
        raise RuntimeError(
            f"{name}: Expected B to have at least 2 dimensions, but it has "
            f"{len(sizes_of(B))} dimensions instead"
        )
    n = sizes_of(LD)[-1]
    height, width = sizes_of(B)[-2:]
    if LD.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected b and A to have the same dtype, but found b of type "
            f"{B.dtype.scalar_name} and A of type {LD.dtype.scalar_name} instead."
        )
    if n != height:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix "
            f"is {height} by {width}"
        )
    broadcast_shapes(sizes_of(LD)[:-2], sizes_of(B)[:-2])
    if pivots.dtype.is_floating_point or pivots.dtype.is_complex or pivots.dtype.name == "bool":
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}"
        )
    _check_pivots_shape("LD", LD, pivots, name)
    check_kernel_dtype(LD.dtype, "ldl_solve_kernel_cpu")
    return (LD, pivots, B, hermitian)
