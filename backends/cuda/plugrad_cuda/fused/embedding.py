"""Launches embedding and its gradient, which adds rows up atomically."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import plugrad
from plugrad.plugins.kernel_errors import OUTSIDE_TABLE
from plugrad_cuda.fused.launching import (
    CPP,
    INT64,
    Array,
    Launcher,
    cpp,
    over_elements,
    over_rows,
    wide,
)
from plugrad_cuda.fused.runtime import Runtime

# Elements are moved as integers of their size.
_BY_SIZE: Final = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "i64",
    16: "bytes16_t",
}
_INT32: Final = np.dtype(np.int32)

EXPRESSIONS: Final = {
    "embedding": (
        "embedding_counts",
        *(f"embedding<{e}>" for e in _BY_SIZE.values()),
        *(f"{k}<{t}>" for k in ("embedding_backward", "embedding_finish") for t in CPP.values()),
    )
}


def _check_rows(indices: Array, rows: int) -> None:
    if indices.size and ((indices < 0) | (indices >= rows)).any():
        raise IndexError(OUTSIDE_TABLE)


def embedding(run: Runtime, weight: Array, indices: Array) -> Any:
    """Rows of `weight` (V, E) by `indices` of any shape S, as (*S, E)."""
    rows, width = weight.shape
    if run.may_wait():
        _check_rows(indices, rows)
    out = run.xp.empty((*indices.shape, width), weight.dtype)
    if out.size:
        grid, block = over_rows(indices.size, width)
        arrays = (run.xp.ascontiguousarray(weight), run.xp.ascontiguousarray(indices), out)
        kernel = f"embedding<{_BY_SIZE[weight.dtype.itemsize]}>"
        run.launch("embedding", kernel, grid, block, (*arrays, indices.size, rows, width))
    return out


def embedding_backward(
    run: Runtime,
    grad: Array,
    indices: Array,
    rows: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    """Rows of `grad` added up by index, in an order that differs between runs, as in PyTorch.

    Where that is forbidden, the kernel beside sorts them before. 16-bit floats are added up in
    float32.
    """
    element = cpp(grad)
    if element is None or plugrad.are_deterministic_algorithms_enabled():
        return NotImplemented
    xp = run.xp
    width = grad.shape[-1]
    count = indices.size
    if run.may_wait():
        _check_rows(indices, rows)
    accumulated = wide(grad.dtype)
    sums = xp.zeros((rows, width), accumulated)
    if grad.size == 0 or sums.size == 0:
        return sums.astype(grad.dtype, copy=False)
    indices = xp.ascontiguousarray(indices.astype(INT64, copy=False))
    grid, block = over_rows(count, width)
    run.launch(
        "embedding",
        f"embedding_backward<{element}>",
        grid,
        block,
        (xp.ascontiguousarray(grad), indices, sums, count, rows, width, padding_idx),
    )
    if accumulated == grad.dtype and not scale_grad_by_freq:
        return sums
    counts = None
    if scale_grad_by_freq:
        counts = xp.zeros(rows, _INT32)
        grid, block = over_elements(count)
        run.launch("embedding", "embedding_counts", grid, block, (indices, counts, count, rows))
    out = xp.empty((rows, width), grad.dtype)
    grid, block = over_rows(rows, width)
    kernel = f"embedding_finish<{element}>"
    run.launch("embedding", kernel, grid, block, (sums, counts, out, rows, width))
    return out


LAUNCHERS: Final[dict[str, Launcher]] = {
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
}
