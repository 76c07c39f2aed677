"""Rules of layer and batch normalisation, and of their gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import (
    logical_rank,
    moved,
    padded,
    spread,
    to_front,
)
from plugrad.ops.batching.folding import merged, split
from plugrad.ops.batching.indexing import first_of
from plugrad.ops.prepare import nn as prepare
from plugrad.tensor.promotion import to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
Sizes = tuple[int, ...]
Mask = tuple[bool, bool, bool]

_CHECK: Final[Any] = prepare.native_batch_norm
_BACKWARD: Final[Any] = F.native_batch_norm_backward


def native_layer_norm(
    info: VmapInfo,
    dims: Dims,
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Any, Any]:
    rank = logical_rank(input, dims[0])
    front = to_front(input, dims[0])
    place = None if dims[0] is None else 0
    if dims[2] is None and dims[3] is None:
        found = F.native_layer_norm(front, normalized_shape, weight, bias, eps)
        return found, (place, place, place)
    prepare.native_layer_norm(
        first_of(input, dims[0]),
        normalized_shape,
        first_of(weight, dims[2]),
        first_of(bias, dims[3]),
        eps,
    )
    out, mean, rstd = F.native_layer_norm(front, normalized_shape, None, None, eps)
    if weight is not None:
        out = out * padded(weight, dims[2], rank)
    if bias is not None:
        out = out + padded(bias, dims[3], rank)
    return (to_dtype(out, input.dtype), mean, rstd), (0, place, place)


def native_layer_norm_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sizes,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Mask,
) -> tuple[Any, Any]:
    size = info.batch_size
    rank = logical_rank(input, dims[1])
    grad, x = spread(grad_out, dims[0], size), spread(input, dims[1], size)
    center, deviation = spread(mean, dims[3], size), spread(rstd, dims[4], size)
    found: list[Any] = [None, None, None]
    if output_mask[0]:
        through: Any = grad
        factor: Any = weight
        if dims[5] is not None:
            through, factor = to_dtype(grad * padded(factor, dims[5], rank), grad.dtype), None
        found[0] = F.native_layer_norm_backward(
            through, x, normalized_shape, center, deviation, factor, None, (True, False, False)
        )[0]
    # What the operator adds up over is the batch as well.
    over = tuple(range(1, 1 + rank - len(normalized_shape)))
    like = input if weight is None else weight
    if output_mask[1]:
        product = grad * ((x - center) * deviation)
        found[1] = to_dtype(_summed(product, over), like.dtype)
    if output_mask[2]:
        found[2] = to_dtype(_summed(grad, over), like.dtype)
    return tuple(found), tuple([None if item is None else 0 for item in found])


def _summed(x: Tensor, over: Sizes) -> Tensor:
    return F.sum(x, over) if over else F.clone(x)


def _flat(info: VmapInfo, parameter: Tensor | None, dim: int | None) -> Tensor | None:
    """What channels have each, [B * C]."""
    if parameter is None:
        return None
    return F.reshape(spread(parameter, dim, info.batch_size), (-1,))


def _images(info: VmapInfo, x: Tensor, dim: int | None) -> Tensor:
    """(N, B * C, ...): the channels of each element of the batch are others."""
    return merged(spread(x, dim, info.batch_size), 0, 1)


def _batch_norm(
    info: VmapInfo,
    dims: Dims,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Any]:
    """The five results, each with its dimension of the batch in front, or None."""
    given = (input, weight, bias, running_mean, running_var)
    first: Any = [first_of(value, dim) for value, dim in zip(given, dims, strict=False)]
    _CHECK(*first, training, momentum, eps)
    found = F._native_batch_norm_legit_functional(
        _images(info, input, dims[0]),
        _flat(info, weight, dims[1]),
        _flat(info, bias, dims[2]),
        _flat(info, running_mean, dims[3]),
        _flat(info, running_var, dims[4]),
        training,
        momentum,
        eps,
    )
    out = moved(split(found[0], 1, info.batch_size), 1, 0)
    # Without training, there is no mean and no deviation: two tensors without elements.
    return [out, *[_parted(info, item) for item in found[1:]]]


def _parted(info: VmapInfo, item: Tensor | None) -> Tensor | None:
    return None if item is None else split(item, 0, info.batch_size)


def native_batch_norm_functional(
    info: VmapInfo, dims: Dims, input: Tensor, *args: Any
) -> tuple[Any, Any]:
    found = _batch_norm(info, dims, input, *args)
    return tuple(found), tuple([None if item is None else 0 for item in found])


def native_batch_norm(
    info: VmapInfo,
    dims: Dims,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any]:
    written = [(running_mean, dims[3]), (running_var, dims[4])] if training else []
    if dims[0] is not None and any(t is not None and dim is None for t, dim in written):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which "
            "will be updated in place, were not batched.\nIf you are using modules and do not need "
            "eval mode, please set `track_running_stats` to be False.If you are using a prebuilt "
            "module and do not need eval mode, please see the functorch website for resources on "
            "how to patch your module to work with vmap"
        )
    found = _batch_norm(
        info, dims, input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    for (target, dim), moved_on in zip(written, found[3:], strict=False):
        if target is not None:
            if dim is None:
                target.copy_(F.select(moved_on, 0, 0))
            else:
                to_front(target, dim).copy_(moved_on)
    return tuple(found[:3]), (0, 0, 0)


def native_batch_norm_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Mask,
) -> tuple[Any, Any]:
    parameters = (weight, running_mean, running_var, save_mean, save_invstd)
    to_input, to_weight, to_bias = _BACKWARD(
        _images(info, grad_out, dims[0]),
        _images(info, input, dims[1]),
        *[_flat(info, item, dim) for item, dim in zip(parameters, dims[2:7], strict=True)],
        train,
        eps,
        output_mask,
    )
    if to_input is not None:
        to_input = moved(split(to_input, 1, info.batch_size), 1, 0)
    found = (to_input, _parted(info, to_weight), _parted(info, to_bias))
    return found, tuple([None if item is None else 0 for item in found])


RULES: Final[dict[str, Rule]] = {
    "_native_batch_norm_legit_functional": native_batch_norm_functional,
    "native_batch_norm": native_batch_norm,
    "native_batch_norm_backward": native_batch_norm_backward,
    "native_layer_norm": native_layer_norm,
    "native_layer_norm_backward": native_layer_norm_backward,
}
