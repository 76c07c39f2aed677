"""Gradients of views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.errors import OperatorNotFoundError
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.views import equal_parts, unfolded
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def permute_backward(grad: Tensor, dims: Sizes) -> Tensor:
    """The inverse permutation."""
    ndim = len(dims)
    inverse = [0] * ndim
    for place, dim in enumerate(dims):
        inverse[dim % ndim] = place
    return grad.permute(inverse)


def unsqueezed(grad: Tensor, sizes: Sizes) -> Tensor:
    """The gradient itself, not a view of it, where no dimension was squeezed."""
    return grad if sizes_of(grad) == sizes else grad.reshape(sizes)


def split_backward(
    grads: list[TensorBase | None],
    sizes: Sizes,
    dtype: DType,
    device: Device,
    split_size: int,
    dim: int,
) -> Tensor:
    parts, _ = equal_parts(sizes, split_size, dim)
    return split_with_sizes_backward(grads, sizes, dtype, device, parts, dim)


def split_with_sizes_backward(
    grads: list[TensorBase | None],
    sizes: Sizes,
    dtype: DType,
    device: Device,
    split_sizes: Sizes,
    dim: int,
) -> Tensor:
    """The parts' gradients joined, with zeros for unused parts."""
    dim = wrap_dim(dim, len(sizes))
    parts: list[TensorBase] = []
    for grad, length in zip(grads, split_sizes, strict=True):
        if grad is None:
            shape = (*sizes[:dim], length, *sizes[dim + 1 :])
            parts.append(F.zeros(shape, dtype=dtype, device=device))
        else:
            parts.append(grad)
    return F.cat(parts, dim)


def unbind_backward(
    grads: list[TensorBase | None], sizes: Sizes, dtype: DType, device: Device, dim: int
) -> Tensor:
    """The elements' gradients joined, with zeros for unused elements."""
    dim = wrap_dim(dim, len(sizes))
    shape = (*sizes[:dim], *sizes[dim + 1 :])
    parts: list[TensorBase] = []
    for grad in grads:
        if grad is None:
            parts.append(F.zeros(shape, dtype=dtype, device=device))
        else:
            parts.append(grad)
    return F.stack(parts, dim)


def _overlaps(size: Sizes, stride: Sizes) -> bool:
    """Whether two elements may share memory; errs on the side of yes."""
    covered = 0
    for step, length in sorted(zip(stride, size, strict=True)):
        if length > 1:
            if step <= covered:
                return True
            covered += (length - 1) * step
    return False


def as_strided_backward(
    grad: Tensor,
    input_sizes: Sizes,
    input_strides: Sizes,
    input_offset: int,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
) -> Tensor:
    """Sums per memory cell; elements of the input that share a cell get equal parts of its sum."""
    result = F._strided_sum(
        grad, size, stride, storage_offset, input_sizes, input_strides, input_offset
    )
    if not _overlaps(input_sizes, input_strides):
        return result
    geometry = (input_sizes, input_strides, input_offset)
    ones = F.ones(input_sizes, dtype=grad.dtype, device=grad.device)
    shared: Tensor = F._strided_sum(ones, *geometry, *geometry)
    quotient: Tensor = result / shared
    return quotient


def unfold_backward(
    grad: Tensor, input_sizes: Sizes, dimension: int, size: int, step: int
) -> Tensor:
    """Adds up what the windows have of each element."""
    strides = contiguous_strides(input_sizes)
    window, steps = unfolded(input_sizes, strides, dimension, size, step)
    result: Tensor = F._strided_sum(grad, window, steps, 0, input_sizes, strides, 0)
    return result


def complex_of_pairs(grad: Tensor) -> Tensor:
    """Complex numbers of pairs in the last dimension; made by arithmetic where the backend has no
    such view."""
    try:
        return F.view_as_complex(grad.contiguous())
    except OperatorNotFoundError:
        pairs: Any = grad
        made: Tensor = pairs.select(-1, 0) + pairs.select(-1, 1) * 1j
        return made
