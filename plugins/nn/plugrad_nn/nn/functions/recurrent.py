"""Recurrent layers over whole sequences: one matrix product for all inputs, then step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plugrad
from plugrad import Tensor

# The hidden state, and of an LSTM the cell state.
State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]
# weight_ih, weight_hh, bias_ih and bias_hh or neither, weight_hr or not.
Weights = Sequence[Tensor]


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
        dropout: the probability of zeroing what goes from one layer to the next.

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
    of_inputs = plugrad.linear(input, weights[0], b_ih)
    if mode == "GRU":
        step = _gru_step(weights[1], b_hh)
    elif mode == "LSTM":
        step = _lstm_step(weights[1].t(), projection)
    else:
        step = _rnn_step(weights[1].t(), plugrad.tanh if mode == "RNN_TANH" else plugrad.relu)
    if sizes is None:
        count, batch = of_inputs.shape[:2]
        outputs, state = _walk(of_inputs.unbind(0), [batch] * count, start, step, reverse)
        return plugrad.stack(outputs), state
    outputs, state = _walk(of_inputs.split(sizes), sizes, start, step, reverse)
    return plugrad.cat(outputs), state


def _walk(
    inputs: Sequence[Tensor], sizes: list[int], start: State, step: Step, reverse: bool
) -> tuple[list[Tensor], State]:
    """The outputs at all times, and the state of each sequence after its last step.

    The sequences are sorted, longest first, so those that are left are the first ones::

        time     0 1 2 3      sizes = [3, 2, 2, 1]: backwards, the second one joins at time 2
        first    x x x x
        second   x x x
        third    x
    """
    times = range(len(inputs) - 1, -1, -1) if reverse else range(len(inputs))
    here = sizes[times[0]]
    state = start if here == sizes[0] else tuple(part[:here] for part in start)
    ended: list[State] = []
    outputs = list(inputs)
    for time in times:
        size = sizes[time]
        if size < here:
            ended.append(tuple(part[size:] for part in state))
            state = tuple(part[:size] for part in state)
        elif size > here:
            state = tuple(
                plugrad.cat((part, first[here:size]))
                for part, first in zip(state, start, strict=True)
            )
        here = size
        state = step(inputs[time], state)
        outputs[time] = state[0]
    if ended:
        state = tuple(plugrad.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
    return outputs, state


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
