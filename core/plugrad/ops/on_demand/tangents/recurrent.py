"""Tangents of recurrent layers, step by step."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.graph.forward_rule import plus
from plugrad.ops.on_demand.composite.recurrent import State, gru_steps, lstm_steps, walk

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _product_tangent(hidden: Any, hidden_t: Any, w_hh: Any, w_hh_t: Any) -> Any:
    """The tangent of hidden @ w_hh.T."""
    total = F.mm(hidden_t, w_hh.t())
    return total if w_hh_t is None else plus(total, F.mm(hidden, w_hh_t.t()))


def lstm_tangents(
    gates_t: Any,
    hx_t: Any,
    cx_t: Any,
    w_hh_t: Any,
    gates: Tensor,
    hx: Tensor,
    cx: Tensor,
    w_hh: Tensor,
    batch_sizes: Sequence[int],
    reverse: bool,
) -> tuple[Any, ...]:
    steps, _ = lstm_steps(gates, hx, cx, w_hh, batch_sizes, reverse)
    of_inputs = None if gates_t is None else F.split_with_sizes(gates_t, batch_sizes)
    outputs: list[Any] = [None] * len(steps)

    def step(time: int, state: State) -> State:
        hidden_t, cell_t = state
        enter, forget, new, leave, bent, _, _, hidden, cell = steps[time]
        both = _product_tangent(hidden, hidden_t, w_hh, w_hh_t)
        both = both if of_inputs is None else plus(both, of_inputs[time])
        enter_t, forget_t, new_t, leave_t = F.chunk(both, 4, 1)
        cell_t = (
            forget * (cell_t + (1 - forget) * forget_t * cell)
            + (1 - enter) * enter * enter_t * new
            + enter * (1 - new * new) * new_t
        )
        hidden_t = leave * ((1 - leave) * leave_t * bent + (1 - bent * bent) * cell_t)
        outputs[time] = hidden_t
        return hidden_t, cell_t

    start = [
        F.zeros_like(x) if tangent is None else tangent for tangent, x in ((hx_t, hx), (cx_t, cx))
    ]
    hy_t, cy_t = walk(batch_sizes, reverse, tuple(start), step)
    return F.cat(outputs), hy_t, cy_t, None


def gru_tangents(
    gates_t: Any,
    hx_t: Any,
    w_hh_t: Any,
    b_hh_t: Any,
    gates: Tensor,
    hx: Tensor,
    w_hh: Tensor,
    b_hh: Tensor | None,
    batch_sizes: Sequence[int],
    reverse: bool,
) -> tuple[Any, ...]:
    steps, _ = gru_steps(gates, hx, w_hh, b_hh, batch_sizes, reverse)
    of_inputs = None if gates_t is None else F.split_with_sizes(gates_t, batch_sizes)
    outputs: list[Any] = [None] * len(steps)

    def step(time: int, state: State) -> State:
        (hidden_t,) = state
        reset, update, new, inner, _, hidden = steps[time]
        product = _product_tangent(hidden, hidden_t, w_hh, w_hh_t)
        product = product if b_hh_t is None else plus(product, b_hh_t)
        reset_t, update_t, inner_t = F.chunk(product, 3, 1)
        new_t = reset * inner_t
        if of_inputs is not None:
            reset_i, update_i, new_i = F.chunk(of_inputs[time], 3, 1)
            reset_t, update_t, new_t = reset_t + reset_i, update_t + update_i, new_t + new_i
        new_t = (1 - new * new) * (new_t + (1 - reset) * reset * reset_t * inner)
        update_t = (1 - update) * update * update_t
        hidden_t = new_t + update_t * (hidden - new) + update * (hidden_t - new_t)
        outputs[time] = hidden_t
        return (hidden_t,)

    start = F.zeros_like(hx) if hx_t is None else hx_t
    (hy_t,) = walk(batch_sizes, reverse, (start,), step)
    return F.cat(outputs), hy_t, None
