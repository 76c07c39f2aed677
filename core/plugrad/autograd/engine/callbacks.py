"""Callbacks around a backward pass: at its end for whoever runs in it, and for plugins."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.dispatch.local_state import current_state


@final
class Observers:
    """Who is told when a pass begins and ends; the plugin floor fills it in."""

    def __init__(self) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []


observers: Final = Observers()


def observe_backward(begin: Any, end: Any) -> None:
    """Call `begin()` before and `end()` after every pass of the engine."""
    observers.begin.append(begin)
    observers.end.append(end)


def queue_callback(callback: Any) -> None:
    """Call `callback()` once when the running backward pass is complete.

    Raises:
        RuntimeError: no backward pass is running on this thread.
    """
    task = current_state().graph_task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    running: GraphTask = task
    if running.final_callbacks is None:
        running.final_callbacks = []
    running.final_callbacks.append(callback)
