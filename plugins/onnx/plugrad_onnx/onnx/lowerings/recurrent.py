"""Recurrent layers: one node for each layer, including both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.registry import lowers

# ONNX's operator, and its order of gates as positions in PyTorch's weights.
_KINDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "LSTM": ("LSTM", (0, 3, 1, 2)),  # input, output, forget, cell of input, forget, cell, output
    "GRU": ("GRU", (1, 0, 2)),  # update, reset, new of reset, update, new
    "RNN_TANH": ("RNN", (0,)),
    "RNN_RELU": ("RNN", (0,)),
}


@lowers("plugrad_onnx::recurrent")
def recurrent(
    b: Builder,
    x: Value,
    states: Sequence[Value],
    weights: Sequence[Value],
    mode: str,
    hidden_size: int,
    num_layers: int,
    biased: bool,
    batch_first: bool,
    bidirectional: bool,
    layer: int,
) -> tuple[Value, ...]:
    kind, order = _KINDS[mode]
    directions = 2 if bidirectional else 1
    each = 4 if biased else 2
    settings: dict[str, Any] = {
        "hidden_size": hidden_size,
        "direction": "bidirectional" if bidirectional else "forward",
    }
    if mode == "GRU":
        settings["linear_before_reset"] = 1
    if mode == "RNN_RELU":
        settings["activations"] = ["Relu"] * directions
    if batch_first:
        x = b.transpose(x, [1, 0, 2])
    last: list[list[Value]] = [[] for _ in range(2 if mode == "LSTM" else 1)]
    for number in range(num_layers):
        groups = [
            weights[each * place : each * (place + 1)]
            for place in range(number * directions, (number + 1) * directions)
        ]
        w, r = (_stacked(b, [[group[n]] for group in groups], order) for n in (0, 1))
        bias = _stacked(b, [group[2:4] for group in groups], order) if biased else None
        begin = [
            b.slice(state, 0, number * directions, (number + 1) * directions) for state in states
        ]
        found = b.op(kind, x, w, r, bias, None, *begin, outputs=1 + len(last), **settings)
        output, ends = found[0], found[1:]
        for ended, end in zip(last, ends, strict=True):
            ended.append(end)
        # (T, directions, B, H) to (T, B, directions * H)
        turned = b.op("Transpose", output, perm=[0, 2, 1, 3])
        x = b.op("Reshape", turned, b.constant([0, 0, -1]))
    if batch_first:
        x = b.op("Transpose", x, perm=[1, 0, 2])
    ended_states = [b.op("Concat", *ends, axis=0) if len(ends) > 1 else ends[0] for ends in last]
    return (x, *ended_states)


def _stacked(b: Builder, groups: Sequence[Sequence[Value]], order: Sequence[int]) -> Value:
    """Weights stacked by direction, with gates in ONNX's order; several weights of one direction
    are concatenated."""
    rows: list[Value] = []
    for group in groups:
        parts = [_reordered(b, weight, order) for weight in group]
        joined = b.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
        rows.append(b.unsqueeze(joined, 0))
    return b.op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]


def _reordered(b: Builder, weight: Value, order: Sequence[int]) -> Value:
    if len(order) == 1:
        return weight
    size = weight.sizes[0] // len(order)
    gates = b.op("Split", weight, b.constant([size] * len(order)), outputs=len(order), axis=0)
    return b.op("Concat", *[gates[place] for place in order], axis=0)
