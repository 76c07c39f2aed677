"""Views of arrays without data: shapes and strides. Arguments were checked by the core."""

from __future__ import annotations

# Interpreted: it computes shapes only.
from collections.abc import Callable
from typing import Any, Final

from plugrad.dispatch.backends.kernel_errors import NOT_A_VIEW
from plugrad.dtype import DType
from plugrad.tensor.aliasing.strides import contiguous_strides, diagonal_run, viewed_strides
from plugrad.tensor.meta.array import MetaArray, Shape


def view(a: MetaArray, size: Shape) -> MetaArray:
    if a.size == 0 or a.strides == contiguous_strides(a.shape):
        return a.view(size, contiguous_strides(size))
    strides = viewed_strides(a.shape, a.strides, size)
    if strides is None:
        raise RuntimeError(NOT_A_VIEW)
    return a.view(size, strides)


def unsafe_view(a: MetaArray, size: Shape) -> MetaArray:
    return a.new(size)


def permute(a: MetaArray, dims: Shape) -> MetaArray:
    return a.view([a.shape[dim] for dim in dims], [a.strides[dim] for dim in dims])


def transpose(a: MetaArray, dim0: int, dim1: int) -> MetaArray:
    dims = list(range(a.ndim))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return permute(a, tuple(dims))


def t(a: MetaArray) -> MetaArray:
    return permute(a, tuple(reversed(range(a.ndim))))


def squeeze(a: MetaArray, dims: Shape) -> MetaArray:
    kept = [dim for dim in range(a.ndim) if dim not in dims or a.shape[dim] != 1]
    return permute(a, tuple(kept))


def unsqueeze(a: MetaArray, dim: int) -> MetaArray:
    step = a.shape[dim] * a.strides[dim] if dim < a.ndim else 1
    shape = (*a.shape[:dim], 1, *a.shape[dim:])
    return a.view(shape, (*a.strides[:dim], step, *a.strides[dim:]))


def expand(a: MetaArray, size: Shape) -> MetaArray:
    added = len(size) - a.ndim
    strides = [
        0 if old == 1 and new != 1 else stride
        for old, new, stride in zip(a.shape, size[added:], a.strides, strict=True)
    ]
    return a.view(size, [0] * added + strides)


def select(a: MetaArray, dim: int, index: int) -> MetaArray:
    place = index + a.shape[dim] if index < 0 else index
    shape = (*a.shape[:dim], *a.shape[dim + 1 :])
    strides = (*a.strides[:dim], *a.strides[dim + 1 :])
    return a.view(shape, strides, place * a.strides[dim])


def slice_(a: MetaArray, dim: int, start: int, end: int, step: int) -> MetaArray:
    taken = range(a.shape[dim])[start:end:step]
    shape = (*a.shape[:dim], len(taken), *a.shape[dim + 1 :])
    strides = (*a.strides[:dim], a.strides[dim] * step, *a.strides[dim + 1 :])
    return a.view(shape, strides, taken.start * a.strides[dim])


def split(a: MetaArray, sizes: Shape, dim: int) -> tuple[MetaArray, ...]:
    parts: list[MetaArray] = []
    start = 0
    for size in sizes:
        parts.append(slice_(a, dim, start, start + size, 1))
        start += size
    return tuple(parts)


def unbind(a: MetaArray, dim: int) -> tuple[MetaArray, ...]:
    return tuple(select(a, dim, index) for index in range(a.shape[dim]))


def diagonal(a: MetaArray, offset: int, dim1: int, dim2: int) -> MetaArray:
    first, second = dim1 % a.ndim, dim2 % a.ndim
    row, column, length = diagonal_run(a.shape[first], a.shape[second], offset)
    start = row * a.strides[first] + column * a.strides[second]
    kept = [dim for dim in range(a.ndim) if dim not in (first, second)]
    shape = [*(a.shape[dim] for dim in kept), length]
    strides = [*(a.strides[dim] for dim in kept), a.strides[first] + a.strides[second]]
    return a.view(shape, strides, start if length else 0)


def as_strided(a: MetaArray, size: Shape, stride: Shape, storage_offset: int) -> MetaArray:
    return a.view(size, stride, storage_offset - a.offset)


def view_as_real(a: MetaArray) -> MetaArray:
    strides = [2 * stride for stride in a.strides]
    made = a.view((*a.shape, 2), (*strides, 1), a.offset)
    made.dtype = a.dtype.to_real()
    return made


def view_as_complex(a: MetaArray) -> MetaArray:
    made = a.view(a.shape[:-1], [stride // 2 for stride in a.strides[:-1]])
    made.offset //= 2
    made.dtype = a.dtype.to_complex()
    return made


def view_dtype(a: MetaArray, dtype: DType) -> MetaArray:
    old, new = a.dtype.itemsize, dtype.itemsize
    if old == new:
        made = a.view(a.shape, a.strides)
    else:
        shape = (*a.shape[:-1], a.shape[-1] * old // new)
        made = a.view(shape, (*[step * old // new for step in a.strides[:-1]], 1))
        made.offset = made.offset * old // new
    made.dtype = dtype
    return made


def imag(a: MetaArray) -> MetaArray:
    return select(view_as_real(a), a.ndim, 1)


def of_sizes(grad: MetaArray, input_sizes: Shape, *rest: Any) -> MetaArray:
    """What undoes a view: a gradient in the shape of the input."""
    return grad.new(input_sizes)


def strided_sum(
    a: MetaArray, size: Shape, stride: Shape, offset: int, output_size: Shape, *rest: Any
) -> MetaArray:
    return a.new(output_size)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "view": view,
    "_unsafe_view": unsafe_view,
    "permute": permute,
    "transpose": transpose,
    "t": t,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "expand": expand,
    "select": select,
    "slice": slice_,
    "split": split,
    "split_with_sizes": split,
    "unbind": unbind,
    "diagonal": diagonal,
    "_as_strided": as_strided,
    "view_as_real": view_as_real,
    "_view_dtype": view_dtype,
    "view_as_complex": view_as_complex,
    "imag": imag,
    "select_backward": of_sizes,
    "slice_backward": of_sizes,
    "diagonal_backward": of_sizes,
    "_strided_sum": strided_sum,
}
