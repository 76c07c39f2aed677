"""Gradients of recurrent layers.

One operator computes them. If they are differentiated themselves, they are composed from the steps,
which are computed again.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.local_state import current_state
from plugrad.graph.dual_tensors import tangent_of
from plugrad.ops.on_demand.composite.recurrent import (
    gru_backward,
    gru_steps,
    lstm_backward,
    lstm_steps,
)

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _are_differentiated(tensors: Sequence[Any]) -> bool:
    """Whether derivatives with respect to these may be needed."""
    if current_state().grad_enabled:
        return True
    return any(tensor is not None and tangent_of(tensor) is not None for tensor in tensors)


def lstm_gradients(
    grads: Sequence[Any],
    gates: Tensor,
    hx: Tensor,
    cx: Tensor,
    w_hh: Tensor,
    output: Tensor,
    workspace: Tensor,
    batch_sizes: Sequence[int],
    reverse: bool,
    mask: Sequence[bool],
) -> Any:
    given = tuple(grads[:3])
    if _are_differentiated((*given, gates, hx, cx, w_hh)):
        steps, _ = lstm_steps(gates, hx, cx, w_hh, batch_sizes, reverse)
        return lstm_backward(given, steps, hx, cx, w_hh, batch_sizes, reverse, mask)
    backward: Any = F._lstm_layer_backward
    return backward(*given, hx, cx, w_hh, output, workspace, batch_sizes, reverse, list(mask))


def gru_gradients(
    grads: Sequence[Any],
    gates: Tensor,
    hx: Tensor,
    w_hh: Tensor,
    b_hh: Tensor | None,
    output: Tensor,
    workspace: Tensor,
    batch_sizes: Sequence[int],
    reverse: bool,
    mask: Sequence[bool],
) -> Any:
    given = tuple(grads[:2])
    if _are_differentiated((*given, gates, hx, w_hh, b_hh)):
        steps, _ = gru_steps(gates, hx, w_hh, b_hh, batch_sizes, reverse)
        return gru_backward(given, steps, hx, w_hh, batch_sizes, reverse, mask)
    backward: Any = F._gru_layer_backward
    return backward(*given, hx, w_hh, output, workspace, batch_sizes, reverse, list(mask))
