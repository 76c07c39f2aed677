"""Shapes and dtypes of matrix products, checked in PyTorch's words."""

from __future__ import annotations

from typing import Any, NoReturn

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, FLOATING, DType
from plugrad.tensor.base import TensorBase, ndim_of, sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import check_scalar_fits, to_dtype


def reject_bool(kernel: str, dtype: DType, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Matrix products are not defined for bool, except where there is nothing to multiply."""
    if dtype.category == BOOL and 0 not in a and 0 not in b:
        raise not_implemented(kernel, dtype)


def check_same_matrix_dtype(a: TensorBase, b: TensorBase) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{CPP_NAMES[a.dtype.name]} != {CPP_NAMES[b.dtype.name]}"
        )


def raise_cannot_multiply(
    rows: int, inner: int, second: tuple[int, ...], transposed: bool = False
) -> NoReturn:
    if transposed:
        second = (second[1], second[0])
    raise RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {second[0]}x{second[1]})"
    )


def mm(self: TensorBase, mat2: TensorBase) -> tuple[object, ...]:
    a = sizes_of(self)
    b = sizes_of(mat2)
    if len(a) != 2:
        raise RuntimeError("self must be a matrix")
    if len(b) != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a[1] != b[0]:
        raise_cannot_multiply(a[0], a[1], b)
    check_same_matrix_dtype(self, mat2)
    reject_bool("addmm_impl_cpu_", self.dtype, a, b)
    return (self, mat2)


def bmm(self: TensorBase, mat2: TensorBase) -> tuple[object, ...]:
    a = sizes_of(self)
    b = sizes_of(mat2)
    if len(a) != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if len(b) != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] "
            f"but got: [{b[0]}, {b[1]}]."
        )
    if self.dtype is not mat2.dtype:
        if 0 not in a and 0 not in b:
            raise RuntimeError(
                f"expected scalar type {self.dtype.scalar_name} but found {mat2.dtype.scalar_name}"
            )
        # Where there is nothing to multiply, the result has the dtype of the second.
        self = to_dtype(self, mat2.dtype)
    reject_bool("bmm", self.dtype, a, b)
    return (self, mat2)


def mv(self: TensorBase, vec: TensorBase) -> tuple[object, ...]:
    a = sizes_of(self)
    v = sizes_of(vec)
    if len(a) != 2 or len(v) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(v)}")
    if a[1] != v[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({v[0]})")
    if self.dtype is not vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{vec.dtype.scalar_name}, {self.dtype.scalar_name}, and {vec.dtype.scalar_name}"
        )
    reject_bool("addmv_impl_cpu", self.dtype, a, v)
    return (self, vec)


def _two_vectors(name: str, self: TensorBase, other: TensorBase) -> tuple[object, ...]:
    a = sizes_of(self)
    b = sizes_of(other)
    if len(a) != 1 or len(b) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if self.dtype is not other.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found "
            f"{self.dtype.scalar_name} and {other.dtype.scalar_name}"
        )
    if a[0] != b[0]:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the "
            f"same number of elements, but got {a[0]} and {b[0]} elements respectively"
        )
    reject_bool(name, self.dtype, (), ())
    return (self, other)


def dot(self: TensorBase, tensor: TensorBase) -> tuple[object, ...]:
    return _two_vectors("dot", self, tensor)


def vdot(self: TensorBase, other: TensorBase) -> tuple[object, ...]:
    return _two_vectors("dot", self, other)


def addmm(
    self: TensorBase, mat1: TensorBase, mat2: TensorBase, beta: Any, alpha: Any
) -> tuple[object, ...]:
    a = sizes_of(mat1)
    b = sizes_of(mat2)
    if len(a) != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {len(a)}-D tensor")
    if len(b) != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {len(b)}-D tensor")
    if a[1] != b[0]:
        raise_cannot_multiply(a[0], a[1], b)
    if self.dtype is not mat2.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{self.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    check_same_matrix_dtype(mat1, mat2)
    reject_bool("addmm_impl_cpu_", self.dtype, a, b)
    check_expands(sizes_of(self), (a[0], b[1]))
    check_scalar_fits(beta, self.dtype)
    check_scalar_fits(alpha, self.dtype)
    if self.dtype.category < FLOATING:
        beta = int(beta)
        alpha = int(alpha)
    return (self, mat1, mat2, beta, alpha)


def check_expands(sizes: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Whether a tensor of `sizes` broadcasts to exactly `target`."""
    if len(sizes) > len(target):
        raise RuntimeError(
            "expand(plugrad tensor, size): the number of sizes provided "
            f"({len(target)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(sizes)})"
        )
    for offset in range(1, len(sizes) + 1):
        size = sizes[-offset]
        if size != 1 and size != target[-offset]:
            raise RuntimeError(
                f"The expanded size of the tensor ({target[-offset]}) must match the existing size "
                f"({size}) at non-singleton dimension {len(target) - offset}.  Target sizes: "
                f"{list(target)}.  Tensor sizes: {list(sizes)}"
            )


def linear(input: TensorBase, weight: TensorBase, bias: TensorBase | None) -> tuple[object, ...]:
    a = sizes_of(input)
    w = sizes_of(weight)
    ndim = len(w)
    if not a or not w:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {len(a)}D and {ndim}D"
        )
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    if a[-1] != w[-1]:
        rows = _rows(a)
        if ndim == 1:
            raise RuntimeError(
                f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({w[0]})"
            )
        raise_cannot_multiply(rows, a[-1], w, True)
    check_same_matrix_dtype(input, weight)
    reject_bool("addmm_impl_cpu_", input.dtype, a[:-1], w[:-1])
    if bias is not None:
        if bias.dtype is not input.dtype:
            raise RuntimeError(
                "self and mat2 must have the same dtype, but got "
                f"{bias.dtype.scalar_name} and {weight.dtype.scalar_name}"
            )
        if ndim == 1:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
        b = sizes_of(bias)
        if len(b) != 1 or b[0] != w[0]:
            check_expands(b, (*a[:-1], w[0]) if len(b) >= len(a) else (_rows(a), w[0]))
    return (input, weight, bias)


def _rows(sizes: tuple[int, ...]) -> int:
    rows = 1
    for size in sizes[:-1]:
        rows *= size
    return rows


def trace(self: TensorBase) -> tuple[object, ...]:
    if ndim_of(self) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {ndim_of(self)}")
    return (self,)
