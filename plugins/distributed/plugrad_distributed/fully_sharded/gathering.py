"""Gathered parameters as the outputs of a node of the graph.

    anchor ── gathering ── a, b ── forward of the module
                  │
          its backward runs when the gradients of a and b are complete

The node comes before all others of the module, so the engine runs it after them and before those of
earlier modules, whose backward continues while the gradients are reduced. Sharded parameters are
not inputs of it, because hooks on them would run before their gradients exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plugrad
from plugrad import Tensor

if TYPE_CHECKING:
    from plugrad_distributed.fully_sharded.group import ParameterGroup

__all__ = ["gathered"]


class _Gathering(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, group: ParameterGroup, use: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.group, ctx.use = group, use
        outputs = tuple(whole.detach() for whole in group.wholes())
        fixed = [
            output
            for output, parameter in zip(outputs, group.parameters, strict=True)
            if not parameter.sharded.requires_grad
        ]
        ctx.mark_non_differentiable(*fixed)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        with plugrad.no_grad():
            ctx.group.gradients_arrived(ctx.use, [g if g is None else g.detach() for g in grads])
        return None, None, None


def gathered(group: ParameterGroup, use: Any) -> list[Tensor]:
    """The whole parameters of a group, for one forward; the group receives their gradients.

    Args:
        use: a function that the group calls when they arrive.
    """
    trained = any(parameter.sharded.requires_grad for parameter in group.parameters)
    anchor = plugrad.empty(0, requires_grad=trained)
    return list(_Gathering.apply(anchor, group, use))
