"""Arguments of layers' operators, with PyTorch's messages: embedding, dropout, and imports from
other modules."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import FLOATING, bool_, int32, int64
from plugrad.ops.prepare.convolution import convolution as convolution
from plugrad.ops.prepare.convolution import convolution_backward as convolution_backward
from plugrad.ops.prepare.normalisation import fused_rms_norm as fused_rms_norm
from plugrad.ops.prepare.normalisation import native_batch_norm as native_batch_norm
from plugrad.ops.prepare.normalisation import native_group_norm as native_group_norm
from plugrad.ops.prepare.normalisation import (
    native_group_norm_backward as native_group_norm_backward,
)
from plugrad.ops.prepare.normalisation import native_layer_norm as native_layer_norm
from plugrad.ops.prepare.pooling import avg_pool2d as avg_pool2d
from plugrad.ops.prepare.pooling import avg_pool2d_backward as avg_pool2d_backward
from plugrad.ops.prepare.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from plugrad.ops.prepare.pooling import (
    max_pool2d_with_indices_backward as max_pool2d_with_indices_backward,
)
from plugrad.tensor.base import TensorBase, numel_of, sizes_of
from plugrad.tensor.calls.promotion import to_dtype


def embedding(
    weight: TensorBase,
    indices: TensorBase,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> tuple[object, ...]:
    if len(sizes_of(weight)) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype is not int64 and indices.dtype is not int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got plugrad.{indices.dtype.scalar_name}Tensor instead (while checking "
            "arguments for embedding)"
        )
    return (weight, to_dtype(indices, int64))


def native_dropout(
    input: TensorBase, p: float, train: bool | None, generator: Any
) -> tuple[object, ...]:
    drops = train is None or train
    if drops and not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1.0 - p}")
    if drops and input.dtype.category < FLOATING:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}"
        )
    return (input, p, drops, generator)


def native_dropout_backward(grad_output: TensorBase, mask: TensorBase, scale: float) -> Any:
    # Arguments that need promotion are left to products.
    floats = grad_output.dtype.category >= FLOATING and mask.dtype is bool_
    return (grad_output, mask, scale) if floats else DECLINED


def one_hot(self: TensorBase, num_classes: int) -> tuple[object, ...]:
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if numel_of(self) == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return (self, num_classes)
