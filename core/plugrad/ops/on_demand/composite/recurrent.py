"""Recurrent layers over whole sequences, step by step.

They consist of differentiable operators, so gradients of gradients come from the same functions.
`steps` are the states of a layer, by time.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plugrad._generated import functions as F
from plugrad.ops.on_demand.prepare import recurrent as prepare

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = Sequence[int]
# The states of a layer, (sequences, H) each.
State = tuple[Any, ...]
Step = Callable[[int, State], State]


def walk(sizes: Sizes, reverse: bool, start: State, step: Step) -> State:
    """The state of each sequence after its last step.

    The sequences are sorted, longest first, so those that are left are the first ones::

        time     0 1 2 3      sizes = [3, 2, 2, 1]: backwards, the second one joins at time 2
        first    x x x x
        second   x x x
        third    x

    Args:
        sizes: how many sequences there are at each time.
        reverse: from the last time to the first.
        start: states of all sequences.
        step: makes the next state of one and a time.
    """
    times = range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))
    here = sizes[times[0]]
    state = start if here == sizes[0] else tuple([part[:here] for part in start])
    ended: list[State] = []
    for time in times:
        size = sizes[time]
        if size < here:
            ended.append(tuple([part[size:] for part in state]))
            state = tuple([part[:size] for part in state])
        elif size > here:
            pairs = zip(state, start, strict=True)
            state = tuple([F.cat([part, first[here:size]]) for part, first in pairs])
        here = size
        state = step(time, state)
    if ended:
        state = tuple([F.cat(list(parts)) for parts in zip(state, *reversed(ended), strict=True)])
    return state


class LstmStep(NamedTuple):
    """One step of long short-term memory, (n, H) each."""

    enter: Any
    forget: Any
    new: Any
    leave: Any
    bent: Any  # tanh of the cell
    cell: Any
    hidden: Any
    hidden_before: Any
    cell_before: Any


def lstm_steps(
    gates: Tensor, hx: Tensor, cx: Tensor, w_hh: Tensor, sizes: Sizes, reverse: bool
) -> tuple[list[LstmStep], State]:
    """The steps by time, and the last states."""
    of_inputs = F.split_with_sizes(gates, sizes)
    turned: Any = w_hh.t()
    steps: list[Any] = [None] * len(sizes)

    def step(time: int, state: State) -> State:
        hidden, cell = state
        enter, forget, new, leave = F.chunk(F.addmm(of_inputs[time], hidden, turned), 4, 1)
        enter, forget, leave = F.sigmoid(enter), F.sigmoid(forget), F.sigmoid(leave)
        new = F.tanh(new)
        made = forget * cell + enter * new
        bent = F.tanh(made)
        out = leave * bent
        steps[time] = LstmStep(enter, forget, new, leave, bent, made, out, hidden, cell)
        return out, made

    return steps, walk(sizes, reverse, (hx, cx), step)


def lstm_by_steps(
    gates: Tensor, hx: Tensor, cx: Tensor, w_hh: Tensor, batch_sizes: Sizes, reverse: bool
) -> tuple[Any, ...]:
    prepare.lstm_layer(gates, hx, cx, w_hh, tuple(batch_sizes), reverse)
    steps, (hy, cy) = lstm_steps(gates, hx, cx, w_hh, batch_sizes, reverse)
    output = F.cat([step.hidden for step in steps])
    return output, hy, cy, F.cat([part for step in steps for part in step[:6]])


def lstm_backward(
    grads: State,
    steps: list[LstmStep],
    hx: Tensor,
    cx: Tensor,
    w_hh: Tensor,
    sizes: Sizes,
    reverse: bool,
    mask: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients of `gates`, `hx`, `cx` and, if the mask requests it, `w_hh`.

    Args:
        grads: of the output, and the last states; None for none.
    """
    of_outputs = None if grads[0] is None else F.split_with_sizes(grads[0], sizes)
    start = [F.zeros_like(x) if g is None else g for g, x in zip(grads[1:], (hx, cx), strict=True)]
    to_gates: list[Any] = [None] * len(sizes)

    def step(time: int, state: State) -> State:
        to_hidden, to_cell = state
        enter, forget, new, leave, bent, _, _, _, before = steps[time]
        if of_outputs is not None:
            to_hidden = to_hidden + of_outputs[time]
        to_cell = to_cell + to_hidden * leave * (1 - bent * bent)
        found = F.cat(
            [
                to_cell * new * (enter * (1 - enter)),
                to_cell * before * (forget * (1 - forget)),
                to_cell * enter * (1 - new * new),
                to_hidden * bent * (leave * (1 - leave)),
            ],
            1,
        )
        to_gates[time] = found
        return F.mm(found, w_hh), to_cell * forget

    to_hx, to_cx = walk(sizes, not reverse, tuple(start), step)
    total: Any = F.cat(to_gates)
    to_weight = None
    if mask[3]:
        to_weight = F.mm(total.t(), F.cat([step.hidden_before for step in steps]))
    return total, to_hx, to_cx, to_weight


def lstm_backward_by_steps(
    grad_output: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    hx: Tensor,
    cx: Tensor,
    w_hh: Tensor,
    output: Tensor,
    workspace: Tensor,
    batch_sizes: Sizes,
    reverse: bool,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    hidden = F.split_with_sizes(output, batch_sizes)
    kept = F.split_with_sizes(workspace, [6 * size for size in batch_sizes])
    steps: list[Any] = [None] * len(batch_sizes)

    def step(time: int, state: State) -> State:
        parts = F.split_with_sizes(kept[time], [batch_sizes[time]] * 6)
        steps[time] = LstmStep._make((*parts, hidden[time], *state))
        return hidden[time], parts[5]

    walk(batch_sizes, reverse, (hx, cx), step)
    grads = (grad_output, grad_hy, grad_cy)
    return lstm_backward(grads, steps, hx, cx, w_hh, batch_sizes, reverse, output_mask)


class GruStep(NamedTuple):
    """One step of gated recurrent units, (n, H) each."""

    reset: Any
    update: Any
    new: Any
    inner: Any  # what `reset` is multiplied by
    hidden: Any
    hidden_before: Any


def gru_steps(
    gates: Tensor, hx: Tensor, w_hh: Tensor, b_hh: Tensor | None, sizes: Sizes, reverse: bool
) -> tuple[list[GruStep], State]:
    """The steps by time, and the last states."""
    of_inputs = F.split_with_sizes(gates, sizes)
    steps: list[Any] = [None] * len(sizes)

    def step(time: int, state: State) -> State:
        (hidden,) = state
        reset_i, update_i, new_i = F.chunk(of_inputs[time], 3, 1)
        reset_h, update_h, inner = F.chunk(F.linear(hidden, w_hh, b_hh), 3, 1)
        reset, update = F.sigmoid(reset_i + reset_h), F.sigmoid(update_i + update_h)
        new = F.tanh(new_i + reset * inner)
        out = new + update * (hidden - new)
        steps[time] = GruStep(reset, update, new, inner, out, hidden)
        return (out,)

    return steps, walk(sizes, reverse, (hx,), step)


def gru_by_steps(
    gates: Tensor,
    hx: Tensor,
    w_hh: Tensor,
    b_hh: Tensor | None,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Any, ...]:
    prepare.gru_layer(gates, hx, w_hh, b_hh, tuple(batch_sizes), reverse)
    steps, (hy,) = gru_steps(gates, hx, w_hh, b_hh, batch_sizes, reverse)
    output = F.cat([step.hidden for step in steps])
    return output, hy, F.cat([part for step in steps for part in step[:4]])


def gru_backward(
    grads: State,
    steps: list[GruStep],
    hx: Tensor,
    w_hh: Tensor,
    sizes: Sizes,
    reverse: bool,
    mask: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients of `gates`, `hx` and, if the mask requests them, `w_hh` and `b_hh`.

    Args:
        grads: of the output, and the last states; None for none.
    """
    of_outputs = None if grads[0] is None else F.split_with_sizes(grads[0], sizes)
    start: Any = F.zeros_like(hx) if grads[1] is None else grads[1]
    to_gates: list[Any] = [None] * len(sizes)
    to_products: list[Any] = [None] * len(sizes)

    def step(time: int, state: State) -> State:
        (to_hidden,) = state
        reset, update, new, inner, _, before = steps[time]
        if of_outputs is not None:
            to_hidden = to_hidden + of_outputs[time]
        to_update = to_hidden * (before - new) * (update * (1 - update))
        to_new = to_hidden * (1 - update) * (1 - new * new)
        to_reset = to_new * inner * (reset * (1 - reset))
        to_gates[time] = F.cat([to_reset, to_update, to_new], 1)
        to_products[time] = F.cat([to_reset, to_update, to_new * reset], 1)
        return (F.addmm(to_hidden * update, to_products[time], w_hh),)

    (to_hx,) = walk(sizes, not reverse, (start,), step)
    of_product: Any = F.cat(to_products)
    to_weight = to_bias = None
    if mask[2]:
        to_weight = F.mm(of_product.t(), F.cat([step.hidden_before for step in steps]))
    if mask[3]:
        to_bias = of_product.sum(dim=(0,))
    return F.cat(to_gates), to_hx, to_weight, to_bias


def gru_backward_by_steps(
    grad_output: Tensor | None,
    grad_hy: Tensor | None,
    hx: Tensor,
    w_hh: Tensor,
    output: Tensor,
    workspace: Tensor,
    batch_sizes: Sizes,
    reverse: bool,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    hidden = F.split_with_sizes(output, batch_sizes)
    kept = F.split_with_sizes(workspace, [4 * size for size in batch_sizes])
    steps: list[Any] = [None] * len(batch_sizes)

    def step(time: int, state: State) -> State:
        parts = F.split_with_sizes(kept[time], [batch_sizes[time]] * 4)
        steps[time] = GruStep._make((*parts, hidden[time], *state))
        return (hidden[time],)

    walk(batch_sizes, reverse, (hx,), step)
    grads = (grad_output, grad_hy)
    return gru_backward(grads, steps, hx, w_hh, batch_sizes, reverse, output_mask)
