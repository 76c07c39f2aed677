"""Launches pooling and its gradients: one kernel each, a thread for each element that is made."""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad_cuda.fused.launching import (
    CPP,
    INT64,
    Array,
    Launcher,
    cpp,
    index_type,
    over_elements,
)
from plugrad_cuda.fused.runtime import Runtime

Pair = tuple[int, int]

EXPRESSIONS: Final = {
    "pooling": tuple(
        f"{kernel}<{t}, {index}>"
        for t in CPP.values()
        for index in ("int", "i64")
        for kernel in ("max_pool", "max_pool_backward", "avg_pool", "avg_pool_backward")
    )
}


def _launch(
    run: Runtime, kernel: str, arrays: tuple[Array, ...], made: Array, sizes: tuple[int, ...]
) -> None:
    element = cpp(made)
    # A window may begin that far in front of an image, or end that far behind it.
    index = index_type(*(2 * a.size for a in arrays), *(4 * size for size in sizes))
    grid, block = over_elements(made.size)
    run.launch("pooling", f"{kernel}<{element}, {index}>", grid, block, (*arrays, *sizes))


def max_pool2d(
    run: Runtime, x: Array, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> Any:
    """Maxima, and their positions in the images as row * width + column."""
    if cpp(x) is None:
        return NotImplemented
    xp = run.xp
    shape = (*x.shape[:-2], *out)
    best, indices = xp.empty(shape, x.dtype), xp.empty(shape, INT64)
    if best.size:
        planes = math.prod(x.shape[:-2])
        sizes = (planes, *x.shape[-2:], *out, *kernel, *step, *pad, *spread)
        _launch(run, "max_pool", (xp.ascontiguousarray(x), best, indices), best, sizes)
    return best, indices


def max_pool2d_backward(
    run: Runtime,
    grad: Array,
    shape: tuple[int, ...],
    indices: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
) -> Any:
    """Each element's gradients from the windows that it is the maximum of."""
    if cpp(grad) is None:
        return NotImplemented
    xp = run.xp
    result = xp.empty(shape, grad.dtype)
    if result.size:
        sizes = (math.prod(shape[:-2]), *shape[-2:], *out, *kernel, *step, *pad, *spread)
        arrays = (xp.ascontiguousarray(grad), xp.ascontiguousarray(indices), result)
        _launch(run, "max_pool_backward", arrays, result, sizes)
    return result


def avg_pool2d(
    run: Runtime,
    x: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Means of windows."""
    if cpp(x) is None:
        return NotImplemented
    xp = run.xp
    result = xp.empty((*x.shape[:-2], *out), x.dtype)
    if result.size:
        sizes = (math.prod(x.shape[:-2]), *x.shape[-2:], *out, *kernel, *step, *pad)
        flags = (int(count_include_pad), divisor_override or 0)
        _launch(run, "avg_pool", (xp.ascontiguousarray(x), result), result, (*sizes, *flags))
    return result


def avg_pool2d_backward(
    run: Runtime,
    grad: Array,
    shape: tuple[int, ...],
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Each element's shares of the windows that it is in."""
    if cpp(grad) is None:
        return NotImplemented
    xp = run.xp
    result = xp.empty(shape, grad.dtype)
    if result.size:
        sizes = (math.prod(shape[:-2]), *shape[-2:], *out, *kernel, *step, *pad)
        flags = (int(count_include_pad), divisor_override or 0)
        arrays = (xp.ascontiguousarray(grad), result)
        _launch(run, "avg_pool_backward", arrays, result, (*sizes, *flags))
    return result


LAUNCHERS: Final[dict[str, Launcher]] = {
    "max_pool2d_with_indices": max_pool2d,
    "max_pool2d_with_indices_backward": max_pool2d_backward,
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
}
