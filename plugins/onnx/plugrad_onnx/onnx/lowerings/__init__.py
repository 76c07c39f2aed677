"""The lowerings of operators to ONNX nodes, by family; importing this package registers them."""

from __future__ import annotations

from plugrad_onnx.onnx.lowerings import (
    activation,
    attention,
    bags,
    convolution,
    creation,
    elementwise,
    indexing,
    linear,
    losses,
    normalization,
    pooling,
    recurrent,
    reductions,
    resampling,
    shape,
)

__all__ = [
    "activation",
    "attention",
    "bags",
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "linear",
    "losses",
    "normalization",
    "pooling",
    "recurrent",
    "reductions",
    "resampling",
    "shape",
]
