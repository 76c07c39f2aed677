"""Convolution and pooling over signals, images and volumes, composed of lower-level operators."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import Pooling
from plugrad.ops.composite.layers.adaptive_pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from plugrad.ops.composite.layers.adaptive_pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from plugrad.ops.composite.layers.adaptive_pooling import adaptive_max_pool1d as adaptive_max_pool1d
from plugrad.ops.composite.layers.adaptive_pooling import adaptive_max_pool2d as adaptive_max_pool2d
from plugrad.ops.composite.layers.adaptive_pooling import adaptive_max_pool3d as adaptive_max_pool3d
from plugrad.ops.composite.layers.columns import col2im as col2im
from plugrad.ops.composite.layers.columns import im2col as im2col
from plugrad.ops.composite.layers.convolving import conv3d as conv3d
from plugrad.ops.composite.layers.convolving import conv3d_padding as conv3d_padding
from plugrad.ops.composite.layers.convolving import conv_transpose1d as conv_transpose1d
from plugrad.ops.composite.layers.convolving import conv_transpose3d as conv_transpose3d
from plugrad.ops.composite.layers.fractional_pooling import (
    fractional_max_pool2d as fractional_max_pool2d,
)
from plugrad.ops.composite.layers.fractional_pooling import (
    fractional_max_pool3d as fractional_max_pool3d,
)
from plugrad.ops.composite.layers.pooling import avg_pool3d as avg_pool3d
from plugrad.ops.composite.layers.pooling import avg_pool3d_backward as avg_pool3d_backward
from plugrad.ops.composite.layers.pooling import max_pool3d_with_indices as max_pool3d_with_indices
from plugrad.ops.composite.layers.pooling import (
    max_pool3d_with_indices_backward as max_pool3d_with_indices_backward,
)
from plugrad.ops.composite.layers.signals import max_pool1d as max_pool1d
from plugrad.ops.composite.layers.signals import max_pool1d_by_taps as max_pool1d_by_taps
from plugrad.ops.composite.layers.signals import max_pool1d_with_indices as max_pool1d_with_indices
from plugrad.ops.composite.layers.unpooling import max_unpool2d as max_unpool2d
from plugrad.ops.composite.layers.unpooling import max_unpool3d as max_unpool3d

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def max_pool3d(self: Tensor, settings: Pooling) -> Tensor:
    return C.call_max_pool3d_with_indices_with(self, settings)[0]
