"""Long short-term memory: the steps of one layer in one direction.

A step has two products' worth of work: one matrix product, and functions of each element that stay
in the cache. The gradient of the weight is one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.recurrent.steps import (
    Sizes,
    by_kind,
    declines,
    gradient_of,
    last_states,
    loops_of,
    resized,
    sigmoid,
    split,
    split_planes,
    states_before,
    times_of,
)

Array = Any

# In memory for backward: the gates, tanh of the cell, and the cell.
_PLANES: Final = 6


def _forward(product: Array, gates: Array, cell: Array, planes: Array, out: Array) -> None:
    """Fills the planes and the hidden state of one step."""
    enter, forget, new, leave, bent, made = planes
    np.add(by_kind(gates, 4), by_kind(product, 4), planes[:4])
    sigmoid(planes[:2])
    sigmoid(leave)
    np.tanh(new, new)
    np.multiply(forget, cell, made)
    np.multiply(enter, new, out)
    np.add(made, out, made)
    np.tanh(made, bent)
    np.multiply(leave, bent, out)


def lstm(gates: Array, hx: Array, cx: Array, w_hh: Array, sizes: Sizes, reverse: bool) -> Any:
    if declines(gates):
        return NotImplemented
    count, width = len(gates), hx.shape[1]
    forward = getattr(loops_of(gates), "lstm_forward", _forward)
    output = np.empty((count, width), gates.dtype)
    workspace = np.empty((_PLANES * count, width), gates.dtype)
    product = np.empty((sizes[0], 4 * width), gates.dtype)
    outputs, planes = split(output, sizes), split_planes(workspace, sizes, _PLANES)
    of_inputs = split(np.ascontiguousarray(gates), sizes)
    turned = w_hh.T
    hidden, cell = np.ascontiguousarray(hx), np.ascontiguousarray(cx)
    start = (hidden, cell)
    for time in times_of(sizes, reverse):
        size = sizes[time]
        hidden, cell = resized(hidden, start[0], size), resized(cell, start[1], size)
        found = np.matmul(hidden, turned, product[:size])
        forward(found, of_inputs[time], cell, planes[time], outputs[time])
        hidden, cell = outputs[time], planes[time][5]
    cells = [part[5] for part in planes]
    return (
        output,
        last_states(outputs, sizes, reverse),
        last_states(cells, sizes, reverse),
        workspace,
    )


def _backward(
    planes: Array, before: Array, to_hidden: Array, to_cell: Array, to_gates: Array, free: Array
) -> None:
    """One step back: fills the gradient of the gates, and turns the cell's gradient into the
    previous cell's."""
    enter, forget, new, leave, bent, _ = planes
    slopes, spare = free[:4, : len(before)], free[4, : len(before)]
    np.multiply(bent, bent, spare)
    np.subtract(1, spare, spare)
    np.multiply(spare, leave, spare)
    np.multiply(spare, to_hidden, spare)
    np.add(to_cell, spare, to_cell)
    # Slopes of the four functions, times what each is multiplied by.
    np.multiply(planes[:4], planes[:4], slopes)
    np.subtract(planes[:2], slopes[:2], slopes[:2])
    np.subtract(1, slopes[2], slopes[2])
    np.subtract(leave, slopes[3], slopes[3])
    np.multiply(slopes[0], new, slopes[0])
    np.multiply(slopes[1], before, slopes[1])
    np.multiply(slopes[2], enter, slopes[2])
    np.multiply(slopes[3], bent, slopes[3])
    found = by_kind(to_gates, 4)
    np.multiply(slopes[:3], to_cell, found[:3])
    np.multiply(slopes[3], to_hidden, found[3])
    np.multiply(to_cell, forget, to_cell)


def lstm_backward(
    grad_output: Array | None,
    grad_hy: Array | None,
    grad_cy: Array | None,
    hx: Array,
    cx: Array,
    w_hh: Array,
    output: Array,
    workspace: Array,
    sizes: Sizes,
    reverse: bool,
    wanted: tuple[bool, bool, bool, bool],
) -> Any:
    if declines(output):
        return NotImplemented
    count, width = output.shape
    to_gates = np.empty((count, 4 * width), output.dtype)
    backward = getattr(loops_of(to_gates), "lstm_backward", _backward)
    free = np.empty((5, sizes[0], width), output.dtype)
    to_hidden, to_cell = gradient_of(grad_hy, hx), gradient_of(grad_cy, cx)
    planes = split_planes(np.ascontiguousarray(workspace), sizes, _PLANES)
    before = states_before([part[5] for part in planes], np.ascontiguousarray(cx), sizes, reverse)
    of_outputs = None if grad_output is None else split(grad_output, sizes)
    found = split(to_gates, sizes)
    for time in times_of(sizes, not reverse):
        hidden, cell = to_hidden[: sizes[time]], to_cell[: sizes[time]]
        if of_outputs is not None:
            np.add(hidden, of_outputs[time], hidden)
        backward(planes[time], before[time], hidden, cell, found[time], free)
        np.matmul(found[time], w_hh, hidden)
    to_weight = None
    if wanted[3]:
        states = states_before(split(output, sizes), hx, sizes, reverse)
        to_weight = to_gates.T @ np.concatenate(states)
    return to_gates, to_hidden, to_cell, to_weight


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_lstm_layer": lstm,
    "_lstm_layer_backward": lstm_backward,
}
