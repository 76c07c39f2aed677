"""Launches pooling and its gradients: one kernel each, a thread for each element of the result."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

from plugrad.plugins.windows import Windows, on_windows
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

EXPRESSIONS: Final = {
    "pooling": tuple(
        f"{kernel}<{t}, {index}>"
        for t in CPP.values()
        for index in ("int", "i64")
        for kernel in ("max_pool", "max_pool_backward", "avg_pool", "avg_pool_backward")
    )
}


def _launch(
    run: Runtime,
    kernel: str,
    given: tuple[Array, ...],
    made: tuple[Array, ...],
    planes: int,
    windows: Windows,
    *how: int,
) -> None:
    """A thread makes an element of the arrays `made`, which are of one shape."""
    first = made[0]
    if not first.size:
        return
    pairs = (windows.out, windows.kernel, windows.stride, windows.padding, windows.dilation)
    sizes = (planes, *windows.sizes, *itertools.chain(*pairs), *how)
    arrays = (*(run.xp.ascontiguousarray(a) for a in given), *made)
    # A window may begin that far in front of an image, or end that far behind it.
    index = index_type(*(2 * a.size for a in arrays), *(4 * size for size in sizes))
    grid, block = over_elements(first.size)
    run.launch("pooling", f"{kernel}<{cpp(first)}, {index}>", grid, block, (*arrays, *sizes))


def max_pool2d(run: Runtime, x: Array, windows: Windows) -> Any:
    """Maxima, and their positions in the images as row * width + column."""
    if cpp(x) is None:
        return NotImplemented
    shape = (*x.shape[:-2], *windows.out)
    made = (run.xp.empty(shape, x.dtype), run.xp.empty(shape, INT64))
    _launch(run, "max_pool", (x,), made, math.prod(x.shape[:-2]), windows)
    return made


def max_pool2d_backward(
    run: Runtime, grad: Array, shape: tuple[int, ...], indices: Array, windows: Windows
) -> Any:
    """Each element's gradients from the windows that it is the maximum of."""
    if cpp(grad) is None:
        return NotImplemented
    result = run.xp.empty(shape, grad.dtype)
    planes = math.prod(shape[:-2])
    _launch(run, "max_pool_backward", (grad, indices), (result,), planes, windows)
    return result


def avg_pool2d(
    run: Runtime,
    x: Array,
    windows: Windows,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Means of windows."""
    if cpp(x) is None:
        return NotImplemented
    result = run.xp.empty((*x.shape[:-2], *windows.out), x.dtype)
    how = (int(count_include_pad), divisor_override or 0)
    _launch(run, "avg_pool", (x,), (result,), math.prod(x.shape[:-2]), windows, *how)
    return result


def avg_pool2d_backward(
    run: Runtime,
    grad: Array,
    shape: tuple[int, ...],
    windows: Windows,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Each element's shares of the windows that it is in."""
    if cpp(grad) is None:
        return NotImplemented
    result = run.xp.empty(shape, grad.dtype)
    how = (int(count_include_pad), divisor_override or 0)
    _launch(run, "avg_pool_backward", (grad,), (result,), math.prod(shape[:-2]), windows, *how)
    return result


_ON_WINDOWS: Final[dict[str, Launcher]] = {
    "max_pool2d_with_indices": max_pool2d,
    "max_pool2d_with_indices_backward": max_pool2d_backward,
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
}
LAUNCHERS: Final[dict[str, Launcher]] = {
    name: on_windows(name, launcher, leading=1) for name, launcher in _ON_WINDOWS.items()
}
