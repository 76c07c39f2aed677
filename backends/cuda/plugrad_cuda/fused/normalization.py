"""Launches layer_norm and batch_norm, and their gradients."""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad_cuda.fused.launching import (
    CPP,
    Array,
    Launcher,
    accumulator,
    cpp,
    in_one_block,
    index_type,
    over_elements,
    over_rows,
    wide,
)
from plugrad_cuda.fused.runtime import Runtime

Mask = tuple[bool, bool, bool]

# Element types of input and parameters: with 16-bit inputs, parameters may be float32.
_TYPES: Final = (*(f"{t}, {t}" for t in CPP.values()), "half_t, float", "bfloat16_t, float")

EXPRESSIONS: Final = {
    "layer_norm": (
        *(f"{k}<{t}>" for k in ("layer_norm", "layer_norm_to_input") for t in _TYPES),
        *(f"layer_norm_to_parameters<{t}>" for t in CPP.values()),
    ),
    "batch_norm": tuple(
        f"{k}<{t}, {index}>"
        for k in ("batch_statistics", "batch_normalize", "batch_gradient_sums", "batch_to_input")
        for t in _TYPES
        for index in ("int", "i64")
    ),
    "sums": (
        *(f"finish_columns<float, {t}>" for t in ("float", "half_t", "bfloat16_t")),
        "finish_columns<double, double>",
        *(f"channel_sums<{t}, {index}>" for t in CPP.values() for index in ("int", "i64")),
    ),
}

# Rows that one block of partial sums takes, and how many such blocks there are at most.
_SHARE: Final = 256
_MOST_SHARES: Final = 64


def _types(x: Array, *parameters: Array | None) -> str | None:
    """The template arguments for an input and its parameters, if the kernels take them."""
    given = {cpp(p) for p in parameters if p is not None}
    if len(given) > 1:
        return None
    types = f"{cpp(x)}, {given.pop() if given else cpp(x)}"
    return types if types in _TYPES else None


def _contiguous(run: Runtime, *arrays: Array | None) -> tuple[Array | None, ...]:
    return tuple(None if a is None else run.xp.ascontiguousarray(a) for a in arrays)


def layer_norm(
    run: Runtime,
    x: Array,
    shape: tuple[int, ...],
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Any:
    """The normalised input, and mean and 1 / deviation with the normalised dimensions kept as 1.

    Those are float32 for 16-bit inputs.
    """
    types = _types(x, weight, bias)
    size = math.prod(shape)
    if types is None or size == 0:
        return NotImplemented
    xp = run.xp
    leading = x.shape[: x.ndim - len(shape)]
    kept = leading + (1,) * len(shape)
    out = xp.empty(x.shape, x.dtype)
    mean, rstd = xp.empty(kept, wide(x.dtype)), xp.empty(kept, wide(x.dtype))
    rows = mean.size
    if rows:
        grid, block = over_rows(rows, size)
        arrays = _contiguous(run, x, weight, bias)
        args = (*arrays, out, mean, rstd, rows, size, float(eps))
        run.launch("layer_norm", f"layer_norm<{types}>", grid, block, args)
    return out, mean, rstd


def layer_norm_backward(
    run: Runtime,
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    mask: Mask,
) -> Any:
    """The gradients toward input, weight and bias; None if not requested."""
    types = _types(x, weight, bias)
    accumulated = wide(x.dtype)
    size = math.prod(shape)
    if (
        types is None
        or x.size == 0
        or grad.dtype != x.dtype
        or mean.dtype != accumulated
        or rstd.dtype != accumulated
    ):
        return NotImplemented
    xp = run.xp
    rows = x.size // size
    grad, x, weight, mean, rstd = _contiguous(run, grad, x, weight, mean, rstd)
    to_input = None
    if mask[0]:
        to_input = xp.empty(x.shape, x.dtype)
        grid, block = over_rows(rows, size)
        args = (grad, x, weight, mean, rstd, to_input, rows, size)
        run.launch("layer_norm", f"layer_norm_to_input<{types}>", grid, block, args)
    if not (mask[1] or mask[2]):
        return to_input, None, None
    shares = min((rows + _SHARE - 1) // _SHARE, _MOST_SHARES)
    partial = [xp.empty((shares, size), accumulated) if wanted else None for wanted in mask[1:]]
    run.launch(
        "layer_norm",
        f"layer_norm_to_parameters<{cpp(x)}>",
        (size + 31) // 32 * shares,
        (32, 8),
        (grad, x, mean, rstd, *partial, rows, size, shares),
    )
    to_weight, to_bias = (
        None if part is None else finish_columns(run, part, _dtype_of(parameter, x), shape)
        for part, parameter in zip(partial, (weight, bias), strict=True)
    )
    return to_input, to_weight, to_bias


def _dtype_of(parameter: Array | None, x: Array) -> Any:
    """The dtype of a parameter's gradient: the accumulators' if there is no parameter."""
    return wide(x.dtype) if parameter is None else parameter.dtype


def finish_columns(run: Runtime, partial: Array, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Partial sums (shares, ...) added up, in an array of `shape` and `dtype`."""
    if partial.shape[0] == 1 and partial.dtype == dtype:
        return partial.reshape(shape)
    out = run.xp.empty(shape, dtype)
    if out.size:
        grid, block = over_elements(out.size)
        types = f"{accumulator(partial.dtype)}, {CPP[out.dtype.name]}"
        args = (partial, out, partial.shape[0], out.size)
        run.launch("sums", f"finish_columns<{types}>", grid, block, args)
    return out


def channel_sums(run: Runtime, x: Array) -> Array:
    """Sums of (N, C, ...) over all dimensions but channels, in the dtype of x."""
    out = run.xp.empty(x.shape[1], x.dtype)
    if out.size:
        area = math.prod(x.shape[2:])
        args = (run.xp.ascontiguousarray(x), out, x.shape[0], x.shape[1], area)
        kernel = f"channel_sums<{cpp(x)}, {index_type(x.size)}>"
        run.launch("sums", kernel, x.shape[1], in_one_block(x.shape[0] * area), args)
    return out


def batch_norm(
    run: Runtime,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """The normalised input and, when training, mean and 1 / deviation of each channel.

    The running statistics are updated in place; when training they may be None.
    """
    types = _types(x, weight, bias, running_mean, running_var)
    running = (running_mean, running_var)
    written = training and any(a is not None and not a.flags.c_contiguous for a in running)
    if types is None or x.size == 0 or written:
        return NotImplemented
    xp = run.xp
    outer, channels, area = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    types += f", {index_type(x.size)}"
    x, weight, bias, running_mean, running_var = _contiguous(
        run, x, weight, bias, running_mean, running_var
    )
    count = channels if training else 0
    mean, invstd = xp.empty(count, wide(x.dtype)), xp.empty(count, wide(x.dtype))
    used = (mean, invstd) if training else (None, None)
    if training:
        block = in_one_block(outer * area)
        sizes = (outer, channels, area, float(momentum), float(eps))
        args = (x, running_mean, running_var, mean, invstd, *sizes)
        run.launch("batch_norm", f"batch_statistics<{types}>", channels, block, args)
    out = xp.empty(x.shape, x.dtype)
    grid, block = over_elements(x.size)
    parameters = (weight, bias, running_mean, running_var)
    args = (x, *parameters, *used, out, x.size, channels, area, float(eps))
    run.launch("batch_norm", f"batch_normalize<{types}>", grid, block, args)
    return out, mean, invstd


def batch_norm_backward(
    run: Runtime,
    grad: Array,
    x: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    mean: Array | None,
    invstd: Array | None,
    training: bool,
    eps: float,
    mask: Mask,
) -> Any:
    """The gradients toward input, weight and bias; None if not requested."""
    types = _types(x, weight, running_mean, running_var)
    accumulated = wide(x.dtype)
    if types is None or x.size == 0 or grad.dtype != x.dtype:
        return NotImplemented
    if not training:
        mean = invstd = None
    elif mean is None or invstd is None or {mean.dtype, invstd.dtype} != {accumulated}:
        return NotImplemented
    xp = run.xp
    outer, channels, area = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    types += f", {index_type(x.size)}"
    grad, x, weight, running_mean, running_var, mean, invstd = _contiguous(
        run, grad, x, weight, running_mean, running_var, mean, invstd
    )
    sums: tuple[Array | None, Array | None] = (None, None)
    to_weight = to_bias = None
    sizes = (outer, channels, area, float(eps))
    args: tuple[Any, ...]
    if training or mask[1] or mask[2]:
        sums = (xp.empty(channels, accumulated), xp.empty(channels, accumulated))
        block = in_one_block(outer * area)
        args = (grad, x, running_mean, running_var, mean, invstd, *sums, *sizes)
        run.launch("batch_norm", f"batch_gradient_sums<{types}>", channels, block, args)
        dtype = _dtype_of(weight, x)
        to_bias, to_weight = (
            part.astype(dtype, copy=False) if wanted else None
            for part, wanted in zip(sums, (mask[2], mask[1]), strict=True)
        )
    to_input = None
    if mask[0]:
        to_input = xp.empty(x.shape, x.dtype)
        grid, block = over_elements(x.size)
        args = (grad, x, weight, running_var, mean, invstd, *sums, to_input, *sizes)
        run.launch("batch_norm", f"batch_to_input<{types}>", grid, block, args)
    return to_input, to_weight, to_bias


LAUNCHERS: Final[dict[str, Launcher]] = {
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "native_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
}
