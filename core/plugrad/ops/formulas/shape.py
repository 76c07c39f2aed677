"""Gradients of operators that join, repeat and rearrange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dtype import COMPLEX, DType
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.shape import is_skipped
from plugrad.tensor.creation.transfer import cast_first

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def cat_backward(grad: Tensor, shapes: list[Sizes], dim: int) -> list[Tensor]:
    """Each tensor's part of the gradient; those that were skipped get an empty one."""
    ndim = grad.ndim
    dim = wrap_dim(dim, ndim)
    parts: list[Tensor] = []
    start = 0
    for shape in shapes:
        if is_skipped(shape) and (ndim != 1 or dim != 0):
            parts.append(F.zeros(shape, dtype=grad.dtype, device=grad.device))
            continue
        parts.append(F.slice(grad, dim, start, start + shape[dim], 1))
        start += shape[dim]
    return parts


def roll_backward(grad: Tensor, shifts: Sizes, dims: Sizes) -> Tensor:
    return grad.roll(tuple([-shift for shift in shifts]), dims)


def repeat_backward(grad: Tensor, sizes: Sizes, repeats: Sizes) -> Tensor:
    """Sums over the copies: each dimension is split into (copies, size)."""
    if 0 in repeats:
        return F.zeros(sizes, dtype=grad.dtype, device=grad.device)
    added = len(repeats) - len(sizes)
    split: list[int] = []
    copies: list[int] = []
    for position, count in enumerate(repeats):
        if position < added:
            copies.append(len(split))
            split.append(count)
            continue
        if count != 1:
            copies.append(len(split))
            split.append(count)
        split.append(sizes[position - added])
    if not copies:
        return grad
    total: Tensor = grad.reshape(tuple(split)).sum(tuple(copies))
    return total


def selection_backward(grad: Tensor, sizes: Sizes, dim: int, indices: Tensor) -> Tensor:
    """Puts each gradient where its element was taken from."""
    zeros = F.zeros(sizes, dtype=grad.dtype, device=grad.device)
    return C.call_scatter_src(zeros, dim, indices, grad)


def to_copy_backward(grad: Tensor, dtype: DType, device: Device) -> Tensor:
    """The gradient in the input's dtype and on its device; a real input takes the real part."""
    if grad.device is not device:
        if grad.dtype is not dtype and cast_first(grad, dtype, device):
            grad = to_copy_backward(grad, dtype, grad.device)
        grad = F._to_device(grad, device)
    if grad.dtype is dtype:
        return grad
    if grad.dtype.category == COMPLEX and dtype.category < COMPLEX:
        grad = F.real(grad)
    return grad if grad.dtype is dtype else F._to_copy(grad, dtype)
