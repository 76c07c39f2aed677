"""Gradients of pooling over volumes, and of windows as columns."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import Pooling
from plugrad.ops.composite.layers.maxima import at_places

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def max_pool3d_gradient(grad: Tensor, x: Tensor, settings: Pooling, indices: Tensor) -> Tensor:
    return C.call_max_pool3d_with_indices_backward_with(grad, x, settings, indices)


def max_pool3d_double_backward(grad: Tensor, indices: Tensor) -> Tensor:
    """The elements of the cotangent at the positions of the maxima."""
    return at_places(grad, indices, 3)


def avg_pool3d_gradient(grad: Tensor, x: Tensor, settings: Pooling) -> Tensor:
    return C.call_avg_pool3d_backward_with(grad, x, settings)


def avg_pool3d_double_backward(grad: Tensor, settings: Pooling) -> Tensor:
    return C.call_avg_pool3d_with(grad, settings)


def im2col_gradient(grad: Tensor, shape: Ints, settings: Pooling) -> Tensor:
    return C.call_col2im_with(grad, shape[len(shape) - 2 :], settings)


def col2im_gradient(grad: Tensor, settings: Pooling) -> Tensor:
    return C.call_im2col_with(grad, settings)
