"""A view's grad_fn after its base was written to: one node, or the nodes of its operators."""

from __future__ import annotations

# Interpreted: it is a context manager and decorator.
from typing import Any

from plugrad.autograd.grad_mode import _SetAtOnce
from plugrad.dispatch.local_state import LocalState
from plugrad.graph.view_of_base import set_view_replay, view_replay


def is_view_replay_enabled() -> bool:
    """Whether a view's grad_fn shows the view's own operators after a write to its base.

    >>> import plugrad
    >>> plugrad.autograd.is_view_replay_enabled()
    False
    """
    return view_replay()


class _force_original_view_tracking(_SetAtOnce):
    """Sets it to `mode`, at once; as a context manager or decorator it puts the old value back.

    >>> import plugrad
    >>> x = plugrad.ones(4, requires_grad=True).clone()
    >>> with plugrad.autograd._force_original_view_tracking(True):
    ...     view = x.view(2, 2)
    ...     view += 1
    ...     view.grad_fn.name()
    'ViewBackward0'
    """

    def read(self, state: LocalState) -> Any:
        return view_replay()

    def change(self, state: LocalState) -> None:
        set_view_replay(self.mode)

    def restore(self, state: LocalState, before: Any) -> None:
        set_view_replay(before)
