"""Launches nll_loss and its gradient: one kernel each, two for sums over many targets."""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad.plugins.kernel_errors import no_class
from plugrad_cuda.fused.launching import (
    CPP,
    INT64,
    Array,
    Launcher,
    cpp,
    in_one_block,
    index_type,
    over_elements,
    wide,
)
from plugrad_cuda.fused.runtime import Runtime

EXPRESSIONS: Final = {
    "nll_loss": (
        *(f"{kernel}<{t}>" for t in CPP.values() for kernel in ("nll_forward", "nll_finish")),
        *(f"nll_backward<{t}, {index}>" for t in CPP.values() for index in ("int", "i64")),
    )
}

# Targets that one block sums up.
_SHARE: Final = 1 << 14
_MOST_SHARES: Final = 1024


def _sizes(x: Array) -> tuple[int, int, int]:
    """Samples, classes, and places within a sample: x is (C), (N, C) or (N, C, d1, ...)."""
    if x.ndim == 1:
        return 1, x.shape[0], 1
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _no_class(target: Array, classes: int, ignore_index: int) -> Exception:
    """The error for the first target that is out of range."""
    bad = (target != ignore_index) & ((target < 0) | (target >= classes))
    return no_class(int(target[bad].reshape(-1)[0]))


def nll_loss_forward(
    run: Runtime, x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> Any:
    """The loss, and the sum of the weights of the targets that count."""
    element = cpp(x)
    if element is None or target.dtype != INT64:
        return NotImplemented
    if weight is not None and weight.dtype != x.dtype:
        return NotImplemented
    xp = run.xp
    samples, classes, inner = _sizes(x)
    bad = xp.zeros((1,), INT64) if run.may_wait() else None
    count = samples * inner
    each = reduction == "none"
    losses = xp.empty(target.shape, x.dtype) if each else None
    total = None if each else xp.empty((), x.dtype)
    total_weight = xp.empty((), x.dtype)
    blocks = min((count + _SHARE - 1) // _SHARE, _MOST_SHARES)
    partial = xp.empty((blocks, 2), wide(x.dtype)) if blocks > 1 else None
    arrays = (
        xp.ascontiguousarray(x),
        xp.ascontiguousarray(target),
        None if weight is None else xp.ascontiguousarray(weight),
    )
    mean = int(reduction == "mean")
    sizes = (samples, classes, inner, ignore_index, mean)
    run.launch(
        "nll_loss",
        f"nll_forward<{element}>",
        max(blocks, 1),
        in_one_block(count),
        (*arrays, losses, partial, total, total_weight, bad, *sizes),
    )
    if bad is not None and bool(bad[0]):
        raise _no_class(target, classes, ignore_index)
    if partial is not None:
        run.launch(
            "nll_loss",
            f"nll_finish<{element}>",
            1,
            in_one_block(blocks),
            (partial, total, total_weight, blocks, mean),
        )
    return losses if each else total, total_weight


def nll_loss_backward(
    run: Runtime,
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    total_weight: Array,
) -> Any:
    """The gradient toward x: minus weight and gradient at the targets, 0 elsewhere.

    The forward has looked at the targets; one out of range ends the kernel.
    """
    element = cpp(x)
    others = (grad, total_weight) if weight is None else (grad, total_weight, weight)
    if element is None or any(a.dtype != x.dtype for a in others):
        return NotImplemented
    xp = run.xp
    samples, classes, inner = _sizes(x)
    out = xp.empty(x.shape, x.dtype)
    if out.size:
        grid, block = over_elements(out.size)
        arrays = (
            xp.ascontiguousarray(grad),
            xp.ascontiguousarray(target.astype(INT64, copy=False)),
            None if weight is None else xp.ascontiguousarray(weight),
            xp.ascontiguousarray(total_weight),
            out,
        )
        flags = (ignore_index, int(reduction == "mean"), int(reduction == "none"))
        run.launch(
            "nll_loss",
            f"nll_backward<{element}, {index_type(out.size)}>",
            grid,
            block,
            (*arrays, samples, classes, inner, *flags),
        )
    return out


LAUNCHERS: Final[dict[str, Launcher]] = {
    "nll_loss_forward": nll_loss_forward,
    "nll_loss_backward": nll_loss_backward,
}
