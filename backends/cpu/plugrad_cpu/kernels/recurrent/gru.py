"""Gated recurrent units: the steps of one layer in one direction."""

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

# In memory for backward: reset, update, the new state, and the product that reset is applied to.
_PLANES: Final = 4


def _forward(product: Array, gates: Array, hidden: Array, planes: Array, out: Array) -> None:
    """Fills the planes and the hidden state of one step."""
    reset, update, new, inner = planes
    of_input, of_hidden = by_kind(gates, 3), by_kind(product, 3)
    np.add(of_input[:2], of_hidden[:2], planes[:2])
    sigmoid(planes[:2])
    np.copyto(inner, of_hidden[2])
    np.multiply(reset, inner, new)
    np.add(new, of_input[2], new)
    np.tanh(new, new)
    np.subtract(hidden, new, out)
    np.multiply(out, update, out)
    np.add(out, new, out)


def gru(
    gates: Array, hx: Array, w_hh: Array, b_hh: Array | None, sizes: Sizes, reverse: bool
) -> Any:
    if declines(gates):
        return NotImplemented
    count, width = len(gates), hx.shape[1]
    forward = getattr(loops_of(gates), "gru_forward", _forward)
    output = np.empty((count, width), gates.dtype)
    workspace = np.empty((_PLANES * count, width), gates.dtype)
    product = np.empty((sizes[0], 3 * width), gates.dtype)
    outputs, planes = split(output, sizes), split_planes(workspace, sizes, _PLANES)
    of_inputs = split(np.ascontiguousarray(gates), sizes)
    turned = w_hh.T
    hidden = start = np.ascontiguousarray(hx)
    for time in times_of(sizes, reverse):
        size = sizes[time]
        hidden = resized(hidden, start, size)
        found = np.matmul(hidden, turned, product[:size])
        if b_hh is not None:
            np.add(found, b_hh, found)
        forward(found, of_inputs[time], hidden, planes[time], outputs[time])
        hidden = outputs[time]
    return output, last_states(outputs, sizes, reverse), workspace


def _backward(
    planes: Array,
    before: Array,
    to_hidden: Array,
    to_gates: Array,
    to_product: Array,
    free: Array,
) -> None:
    """One step back: fills the gradients of the two sums, and turns the hidden state's gradient
    into the previous state's, without the part through the product."""
    reset, update, new, inner = planes
    found, of_product = by_kind(to_gates, 3), by_kind(to_product, 3)
    slopes, passed = free[:2, : len(before)], free[2, : len(before)]
    np.multiply(to_hidden, update, passed)
    # Slopes of the sigmoids.
    np.multiply(planes[:2], planes[:2], slopes)
    np.subtract(planes[:2], slopes, slopes)
    np.multiply(slopes[0], inner, slopes[0])
    # to_update = to_hidden * (before - new) * slope
    np.multiply(slopes[1], to_hidden, slopes[1])
    np.multiply(slopes[1], before, found[1])
    np.multiply(slopes[1], new, slopes[1])
    np.subtract(found[1], slopes[1], found[1])
    # to_new = to_hidden * (1 - update) * (1 - new * new)
    np.subtract(to_hidden, passed, to_hidden)
    np.multiply(new, new, slopes[1])
    np.subtract(1, slopes[1], slopes[1])
    np.multiply(to_hidden, slopes[1], to_hidden)
    np.copyto(found[2], to_hidden)
    np.multiply(slopes[0], to_hidden, found[0])
    np.copyto(of_product[:2], found[:2])
    np.multiply(to_hidden, reset, of_product[2])
    np.copyto(to_hidden, passed)


def gru_backward(
    grad_output: Array | None,
    grad_hy: Array | None,
    hx: Array,
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
    to_gates = np.empty((count, 3 * width), output.dtype)
    to_product = np.empty((count, 3 * width), output.dtype)
    backward = getattr(loops_of(to_gates), "gru_backward", _backward)
    free = np.empty((3, sizes[0], width), output.dtype)
    onward = np.empty((sizes[0], width), output.dtype)
    to_hidden = gradient_of(grad_hy, hx)
    planes = split_planes(np.ascontiguousarray(workspace), sizes, _PLANES)
    before = states_before(split(output, sizes), np.ascontiguousarray(hx), sizes, reverse)
    of_outputs = None if grad_output is None else split(grad_output, sizes)
    found, of_product = split(to_gates, sizes), split(to_product, sizes)
    for time in times_of(sizes, not reverse):
        size = sizes[time]
        hidden = to_hidden[:size]
        if of_outputs is not None:
            np.add(hidden, of_outputs[time], hidden)
        backward(planes[time], before[time], hidden, found[time], of_product[time], free)
        np.add(hidden, np.matmul(of_product[time], w_hh, onward[:size]), hidden)
    to_weight = to_product.T @ np.concatenate(before) if wanted[2] else None
    to_bias = np.add.reduce(to_product, 0) if wanted[3] else None
    return to_gates, to_hidden, to_weight, to_bias


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_gru_layer": gru,
    "_gru_layer_backward": gru_backward,
}
