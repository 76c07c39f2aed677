"""Rules of layer, group and batch normalisation, and of their gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import GATHERED, GroupNorm, LayerNorm
from plugrad.ops.batching.dims import cast, first_of, logical_rank, moved, padded, spread, to_front
from plugrad.ops.batching.folding import merged, split
from plugrad.ops.batching.table import with_settings
from plugrad.ops.prepare import normalisation as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
Sizes = tuple[int, ...]
Mask = tuple[bool, bool, bool]

_BACKWARD: Final[Any] = F.native_batch_norm_backward
_GROUP_BACKWARD: Final[Any] = F.native_group_norm_backward


def native_layer_norm(
    info: VmapInfo,
    dims: Dims,
    input: Tensor,
    settings: LayerNorm,
    eps: float,
) -> tuple[Any, Any]:
    weight, bias = settings.weight, settings.bias
    rank = logical_rank(input, dims[0])
    front = to_front(input, dims[0])
    place = None if dims[0] is None else 0
    if dims[2] is None and dims[3] is None:
        found = C.call_native_layer_norm_with(front, settings, eps)
        return found, (place, place, place)
    shape = settings.normalized_shape
    first = LayerNorm(shape, first_of(weight, dims[2]), first_of(bias, dims[3]))
    prepare.native_layer_norm(first_of(input, dims[0]), first, eps)
    out, mean, rstd = F.native_layer_norm(front, shape, None, None, eps)
    if weight is not None:
        out = out * padded(weight, dims[2], rank)
    if bias is not None:
        out = out + padded(bias, dims[3], rank)
    return (cast(out, input.dtype), mean, rstd), (0, place, place)


def native_layer_norm_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    input: Tensor,
    settings: LayerNorm,
    mean: Tensor,
    rstd: Tensor,
    output_mask: Mask,
) -> tuple[Any, Any]:
    normalized_shape, weight = settings.normalized_shape, settings.weight
    size = info.batch_size
    rank = logical_rank(input, dims[1])
    grad, x = spread(grad_out, dims[0], size), spread(input, dims[1], size)
    center, deviation = spread(mean, dims[3], size), spread(rstd, dims[4], size)
    found: list[Any] = [None, None, None]
    if output_mask[0]:
        through: Any = grad
        factor: Any = weight
        if dims[5] is not None:
            through, factor = cast(grad * padded(factor, dims[5], rank), grad.dtype), None
        found[0] = F.native_layer_norm_backward(
            through, x, normalized_shape, center, deviation, factor, None, (True, False, False)
        )[0]
    # What the operator adds up over is the batch as well.
    over = tuple(range(1, 1 + rank - len(normalized_shape)))
    like = input if weight is None else weight
    if output_mask[1]:
        product = grad * ((x - center) * deviation)
        found[1] = cast(_summed(product, over), like.dtype)
    if output_mask[2]:
        found[2] = cast(_summed(grad, over), like.dtype)
    return tuple(found), tuple([None if item is None else 0 for item in found])


def _fused_rms_norm(
    info: VmapInfo, dims: Dims, input: Tensor, settings: LayerNorm, eps: float | None
) -> tuple[Any, Any]:
    weight, shape = settings.weight, settings.normalized_shape
    front = to_front(input, dims[0])
    place = None if dims[0] is None else 0
    first = LayerNorm(shape, first_of(weight, dims[2]), None)
    prepare.fused_rms_norm(first_of(input, dims[0]), first, eps)
    if weight is None or dims[2] is None:
        return C.call__fused_rms_norm_with(front, settings, eps), (place, place)
    out, rstd = F._fused_rms_norm(front, shape, None, eps)
    out = out * padded(weight, dims[2], logical_rank(input, dims[0]))
    return (cast(out, input.dtype), rstd), (0, place)


def _fused_rms_norm_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    input: Tensor,
    settings: LayerNorm,
    rstd: Tensor,
    output_mask: tuple[bool, bool],
) -> tuple[Any, Any]:
    shape, weight = settings.normalized_shape, settings.weight
    size = info.batch_size
    rank = logical_rank(input, dims[1])
    grad, x = spread(grad_out, dims[0], size), spread(input, dims[1], size)
    deviation = spread(rstd, dims[3], size)
    found: list[Any] = [None, None]
    if output_mask[0]:
        through: Any = grad
        factor: Any = weight
        if dims[4] is not None:
            through, factor = cast(grad * padded(factor, dims[4], rank), grad.dtype), None
        found[0] = F._fused_rms_norm_backward(through, x, shape, deviation, factor, (True, False))[
            0
        ]
    if output_mask[1]:
        like = input if weight is None else weight
        over = tuple(range(1, 1 + rank - len(shape)))
        found[1] = cast(_summed(grad * (x * deviation), over), like.dtype)
    return tuple(found), tuple([None if item is None else 0 for item in found])


def native_group_norm(
    info: VmapInfo, dims: Dims, input: Tensor, settings: GroupNorm, eps: float
) -> tuple[Any, Any]:
    weight, bias = settings.weight, settings.bias
    sizes = (settings.N, settings.C, settings.HxW, settings.group)
    first = GroupNorm(first_of(weight, dims[1]), first_of(bias, dims[2]), *sizes)
    prepare.native_group_norm(first_of(input, dims[0]), first, eps)
    size, mapped = info.batch_size, dims[1] is not None or dims[2] is not None
    parameters = (None, None) if mapped else (weight, bias)
    samples = _samples(info, input, dims[0])
    found = F.native_group_norm(samples, *parameters, size * settings.N, *sizes[1:], eps)
    out, mean, rstd = (split(item, 0, size, settings.N) for item in found)
    if mapped:
        apart = F.reshape(out, (size, *sizes[:3]))
        for parameter, dim, combined in ((weight, dims[1], F.mul), (bias, dims[2], F.add)):
            if parameter is not None:
                front = F.reshape(spread(parameter, dim, size), (size, 1, settings.C, 1))
                apart = combined(apart, front)
        out = cast(F.reshape(apart, sizes_of(out)), input.dtype)
    return (out, mean, rstd), (0, 0, 0)


def native_group_norm_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
    output_mask: Mask,
) -> tuple[Any, Any]:
    size, weight = info.batch_size, settings.weight
    sizes = (settings.N, settings.C, settings.HxW, settings.group)
    grad, x = spread(grad_out, dims[0], size), spread(input, dims[1], size)
    center, deviation = spread(mean, dims[2], size), spread(rstd, dims[3], size)
    shape = (size, *prepare.by_group(settings))
    apart = F.reshape(grad, shape)
    found: list[Any] = [None, None, None]
    if output_mask[0]:
        through: Any = grad
        factor: Any = weight
        if factor is not None and dims[4] is not None:
            beside = (size, *prepare.beside_groups(settings))
            through = apart * F.reshape(spread(factor, dims[4], size), beside)
            through, factor = cast(F.reshape(through, sizes_of(grad)), grad.dtype), None
        parts = (merged(part, 0, 0) for part in (through, x, center, deviation))
        rest = (factor, size * settings.N, *sizes[1:], (True, False, False))
        to_input = _GROUP_BACKWARD(*parts, *rest)[0]
        found[0] = split(to_input, 0, size, sizes_of(x)[1])
    # What the operator adds up over is the batch as well.
    kept = (*shape[:3], 1, 1)
    if output_mask[1]:
        normalized = (F.reshape(x, shape) - F.reshape(center, kept)) * F.reshape(deviation, kept)
        found[1] = F.sum(apart * normalized, (1, 4))
    if output_mask[2]:
        found[2] = F.sum(apart, (1, 4))
    for place in (1, 2):
        if found[place] is not None:
            found[place] = cast(F.reshape(found[place], (size, settings.C)), mean.dtype)
    return tuple(found), tuple([None if item is None else 0 for item in found])


def _samples(info: VmapInfo, x: Tensor, dim: int | None) -> Tensor:
    """(B * N, ...): the samples of all elements of the batch."""
    return merged(spread(x, dim, info.batch_size), 0, 0)


def _summed(x: Tensor, over: Sizes) -> Tensor:
    return F.sum(x, over) if over else F.clone(x)


def _flat(info: VmapInfo, parameter: Tensor | None, dim: int | None) -> Tensor | None:
    """What channels have each, [B * C]."""
    if parameter is None:
        return None
    return F.reshape(spread(parameter, dim, info.batch_size), (-1,))


def _images(info: VmapInfo, x: Tensor, dim: int | None) -> Tensor:
    """(N, B * C, ...): the channels of each element of the batch are others."""
    images = merged(spread(x, dim, info.batch_size), 0, 1)
    if info.batch_size == 0:
        raise RuntimeError(
            "input tensor must have at least one element, but got input_sizes = "
            f"{list(sizes_of(images))}"
        )
    return images


def _check_batch_norm(dims: Dims, args: Sequence[Any]) -> None:
    firsts = [first_of(value, dim) for value, dim in zip(args[:5], dims, strict=False)]
    prepare.native_batch_norm(*GATHERED["native_batch_norm"](*firsts, *args[5:]))


def _folded(info: VmapInfo, dims: Dims, given: Sequence[Any]) -> list[Any]:
    """Input, weight, bias and running statistics with the channels of all elements."""
    parameters = [_flat(info, *pair) for pair in zip(given[1:], dims[1:5], strict=True)]
    return [_images(info, given[0], dims[0]), *parameters]


def _parted(info: VmapInfo, out: Tensor, others: Sequence[Tensor | None]) -> tuple[Any, Any]:
    """Results with the channels of all elements, each with the batch's dimension in front."""
    found: list[Any] = [moved(split(out, 1, info.batch_size), 1, 0)]
    # Without training, mean and deviation are tensors without elements.
    found += [None if item is None else split(item, 0, info.batch_size) for item in others]
    return tuple(found), tuple([None if item is None else 0 for item in found])


def native_batch_norm_functional(info: VmapInfo, dims: Dims, *args: Any) -> tuple[Any, Any]:
    _check_batch_norm(dims, args)
    folded = _folded(info, dims, args[:5])
    out, *others = F._native_batch_norm_legit_functional(*folded, *args[5:])
    return _parted(info, out, others)


def native_batch_norm(info: VmapInfo, dims: Dims, *args: Any) -> tuple[Any, Any]:
    _check_batch_norm(dims, args)
    training = args[5]
    targets = [(args[place], dims[place]) for place in (3, 4) if training]
    if dims[0] is not None and any(t is not None and dim is None for t, dim in targets):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which "
            "will be updated in place, were not batched.\nIf you are using modules and do not need "
            "eval mode, please set `track_running_stats` to be False.If you are using a prebuilt "
            "module and do not need eval mode, please see the functorch website for resources on "
            "how to patch your module to work with vmap"
        )
    folded = _folded(info, dims, args[:5])
    for place, (target, _) in enumerate(targets, 3):
        if target is not None:
            # Written to as a copy, because a batch may not have the channels' memory layout.
            folded[place] = F.clone(folded[place])
    out, mean, invstd = F.native_batch_norm(*folded, *args[5:])
    for (target, dim), written in zip(targets, folded[3:], strict=False):
        if target is not None:
            rows = split(written, 0, info.batch_size)
            if dim is None:
                target.copy_(F.select(rows, 0, 0))
            else:
                to_front(target, dim).copy_(rows)
    return _parted(info, out, (mean, invstd))


def native_batch_norm_backward(
    info: VmapInfo, dims: Dims, grad_out: Tensor, input: Tensor, *rest: Any
) -> tuple[Any, Any]:
    to_input, to_weight, to_bias = _BACKWARD(
        _images(info, grad_out, dims[0]),
        _images(info, input, dims[1]),
        *[_flat(info, item, dim) for item, dim in zip(rest[:5], dims[2:7], strict=True)],
        *rest[5:],
    )
    found: list[Any] = [None, to_weight, to_bias]
    found[1:] = [None if item is None else split(item, 0, info.batch_size) for item in found[1:]]
    if to_input is not None:
        found[0] = moved(split(to_input, 1, info.batch_size), 1, 0)
    return tuple(found), tuple([None if item is None else 0 for item in found])


RULES: Final[dict[str, Rule]] = {
    "_fused_rms_norm": with_settings(_fused_rms_norm),
    "_fused_rms_norm_backward": with_settings(_fused_rms_norm_backward),
    "_native_batch_norm_legit_functional": native_batch_norm_functional,
    "native_batch_norm": native_batch_norm,
    "native_batch_norm_backward": native_batch_norm_backward,
    "native_group_norm": with_settings(native_group_norm),
    "native_group_norm_backward": with_settings(native_group_norm_backward),
    "native_layer_norm": with_settings(native_layer_norm),
    "native_layer_norm_backward": with_settings(native_layer_norm_backward),
}
