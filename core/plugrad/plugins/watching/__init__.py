"""The interface for plugins that observe a program: calls, dispatch keys, nodes and the engine.

`Trace` is notified of everything; `watching` attaches one to this thread, and to the devices'
threads that work for its backward passes. Without observers, this costs nothing. `Journal` is a
trace that writes all of it into a `Book`, compiled with the core: much faster than a class of
Python, which is called for each event; `read` turns it into events. The other functions return
properties of a node without changing anything: they regenerate no history and unpack no saved
tensor.

    >>> import plugrad
    >>> from plugrad.plugins.watching import Trace, name_of, watching
    >>> class Order(Trace):
    ...     def enter_node(self, node):
    ...         print(name_of(node))
    ...         super().enter_node(node)
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> y = x.exp().sum()
    >>> with watching(Order()):
    ...     y.backward()
    SumBackward0
    ExpBackward0
    AccumulateGrad
"""

from __future__ import annotations

from typing import Any

from plugrad.autograd.inspection import (
    edges_of,
    history_of,
    key_names,
    leaf_of,
    note_of,
    notes_of,
    output_of,
    saved_by,
)
from plugrad.autograd.journal.book import Book
from plugrad.autograd.journal.events import read
from plugrad.autograd.journal.journal import Journal, hears
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState, hear_new_threads, leave_new_threads
from plugrad.dispatch.scope import Scope
from plugrad.graph.node import name_of
from plugrad.tensor.base import sizes_of

__all__ = [
    "Book",
    "Journal",
    "Trace",
    "edges_of",
    "hears",
    "history_of",
    "key_names",
    "leaf_of",
    "name_of",
    "note_of",
    "notes_of",
    "output_of",
    "read",
    "saved_by",
    "sizes_of",
    "watching",
]


class watching(Scope):
    """Context manager: a trace observes this thread, and is called before earlier traces.

    Args:
        trace: its `outer` is set, so it can observe one thread at a time.
        started: another trace, for threads that first use plugrad within the block. They keep it
            when the block ends, and it should pass everything on from then on, as a `Journal` does
            when its book is closed.
    """

    def __init__(self, trace: Trace, started: Trace | None = None) -> None:
        self.trace = trace
        self.started = started

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        self.trace.outer = state.trace
        state.trace = self.trace
        if self.started is not None:
            hear_new_threads(self.started)

    def restore(self, state: LocalState, before: Any) -> None:
        if self.started is not None:
            leave_new_threads(self.started)
        state.trace = before

    def value(self) -> Trace:
        return self.trace
