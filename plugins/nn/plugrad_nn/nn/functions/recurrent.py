"""Recurrent layers over whole sequences: one matrix product for all inputs, then step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins.sequences import walk

# The hidden state, and of an LSTM the cell state.
State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]
# weight_ih, weight_hh, bias_ih and bias_hh or neither, weight_hr or not.
Weights = Sequence[Tensor]

# Modes that have an operator for all steps.
_AS_ONE = ("LSTM", "GRU")


def run_layers(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    start: State,
    weights: Sequence[Weights],
    bias: bool,
    directions: int,
    dropout: float,
) -> tuple[Tensor, State]:
    """Layers of one kind on top of each other.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input: (T, B, I), or packed (sum of `sizes`, I).
        sizes: for each time of a packed input, how many sequences are that long.
        start: states of all layers and directions, (layers * directions, B, H) each.
        weights: for each layer and direction.
        directions: 2 runs each layer from the end to the beginning as well.
        dropout: the probability of zeroing an element between layers.

    Returns:
        the outputs of the last layer, laid out as `input`, and the last states as `start`.
    """
    begin = [part.unbind(0) for part in start]
    last: list[State] = []
    for layer in range(0, len(weights), directions):
        if layer and dropout:
            input = plugrad.dropout(input, dropout, True)
        outputs = []
        for place in range(layer, layer + directions):
            output, state = _run_layer(
                mode,
                input,
                sizes,
                tuple(part[place] for part in begin),
                weights[place],
                bias,
                place > layer,
            )
            outputs.append(output)
            last.append(state)
        input = outputs[0] if directions == 1 else plugrad.cat(outputs, -1)
    return input, tuple(plugrad.stack(parts) for parts in zip(*last, strict=True))


def _run_layer(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    start: State,
    weights: Weights,
    bias: bool,
    reverse: bool,
) -> tuple[Tensor, State]:
    """One layer in one direction."""
    b_ih, b_hh = (weights[2], weights[3]) if bias else (None, None)
    projection = weights[-1] if len(weights) % 2 else None
    if mode != "GRU" and b_ih is not None and b_hh is not None:
        # Both are added to the same sum.
        b_ih = b_ih + b_hh
    if projection is None and mode in _AS_ONE and _is_uniform((input, *start, *weights)):
        given = (weights[0], weights[1], b_ih, b_hh)
        return _run_as_one(mode, input, sizes, start, given, reverse)
    of_inputs = plugrad.linear(input, weights[0], b_ih)
    if mode == "GRU":
        step = _gru_step(weights[1], b_hh)
    elif mode == "LSTM":
        step = _lstm_step(weights[1].t(), projection)
    else:
        step = _rnn_step(weights[1].t(), plugrad.tanh if mode == "RNN_TANH" else plugrad.relu)
    packed = sizes is not None
    if sizes is None:
        sizes = [of_inputs.shape[1]] * of_inputs.shape[0]
    inputs = of_inputs.split(sizes) if packed else of_inputs.unbind(0)
    outputs = list(inputs)

    def step_at(time: int, state: State) -> State:
        state = step(inputs[time], state)
        outputs[time] = state[0]
        return state

    state = walk(sizes, reverse, start, step_at)
    return plugrad.cat(outputs) if packed else plugrad.stack(outputs), state


def _is_uniform(tensors: Sequence[Tensor]) -> bool:
    """Whether all have the same floating dtype and autocast does not change it."""
    first = tensors[0]
    return (
        first.dtype.is_floating_point
        and all(tensor.dtype == first.dtype for tensor in tensors)
        and not plugrad.is_autocast_enabled(first.device.type)
    )


def _run_as_one(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    start: State,
    weights: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    reverse: bool,
) -> tuple[Tensor, State]:
    """All steps by one operator."""
    w_ih, w_hh, b_ih, b_hh = weights
    rows = input if sizes is not None else input.flatten(0, 1)
    count, batch = input.shape[:2]
    run: Any = plugrad._lstm_layer if mode == "LSTM" else plugrad._gru_layer
    # An LSTM's weights have one bias, which is added to the products of the inputs.
    bias = () if mode == "LSTM" else (b_hh,)
    of_inputs = plugrad.linear(rows, w_ih, b_ih)
    output, *state, _ = run(of_inputs, *start, w_hh, *bias, sizes or [batch] * count, reverse)
    if sizes is None:
        output = output.view(count, batch, output.shape[1])
    return output, tuple(state)


def _rnn_step(w_hh_t: Tensor, activation: Callable[[Tensor], Tensor]) -> Step:
    def step(of_input: Tensor, state: State) -> State:
        return (activation(plugrad.addmm(of_input, state[0], w_hh_t)),)

    return step


def _gru_step(w_hh: Tensor, b_hh: Tensor | None) -> Step:
    width = w_hh.shape[1]

    def step(of_input: Tensor, state: State) -> State:
        (hidden,) = state
        both_i, new_i = of_input.split((2 * width, width), 1)
        both_h, new_h = plugrad.linear(hidden, w_hh, b_hh).split((2 * width, width), 1)
        reset, update = plugrad.sigmoid(both_i + both_h).chunk(2, 1)
        new = plugrad.tanh(new_i + reset * new_h)
        return (new + update * (hidden - new),)

    return step


def _lstm_step(w_hh_t: Tensor, projection: Tensor | None) -> Step:
    def step(of_input: Tensor, state: State) -> State:
        hidden, cell = state
        gates = plugrad.addmm(of_input, hidden, w_hh_t)
        enter, forget, new, leave = gates.chunk(4, 1)
        cell = plugrad.sigmoid(forget) * cell + plugrad.sigmoid(enter) * plugrad.tanh(new)
        hidden = plugrad.sigmoid(leave) * plugrad.tanh(cell)
        if projection is not None:
            hidden = plugrad.linear(hidden, projection)
        return hidden, cell

    return step
