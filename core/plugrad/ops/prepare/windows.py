"""Arguments of those operators of the family that have kernels."""

from __future__ import annotations

from plugrad.ops.prepare.columns import col2im as col2im
from plugrad.ops.prepare.columns import im2col as im2col
from plugrad.ops.prepare.pooling import avg_pool3d as avg_pool3d
from plugrad.ops.prepare.pooling import avg_pool3d_backward as avg_pool3d_backward
from plugrad.ops.prepare.pooling import max_pool3d_with_indices as max_pool3d_with_indices
from plugrad.ops.prepare.pooling import (
    max_pool3d_with_indices_backward as max_pool3d_with_indices_backward,
)
