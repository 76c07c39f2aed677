"""An engine with the threads and locks of a schedule explorer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plugrad._tensor.classes import Tensor
from plugrad.autograd.engine.engine import MAX_DEPTH, Engine
from plugrad.autograd.imperative_engine import ImperativeEngine
from plugrad.dispatch.backends.active import active_backends
from plugrad.testing.engines.schedule_explorer import Scheduler


class _Explored(ImperativeEngine):
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def execute(
        self, roots: Any, grads: Any, keep: Any, create: Any, accumulate: Any, wanted: Any
    ) -> Any:
        return self.engine.execute(roots, grads, keep, create, accumulate, wanted)


@contextmanager
def explored_engine(scheduler: Scheduler, max_depth: int = MAX_DEPTH) -> Iterator[Engine]:
    """Within it, backward passes run on an engine under a scheduler; at its end the threads end.

    To be entered by the program that is explored. Devices get fresh queues from their backends,
    so that a plugin's queues are explored as well, if their locks are the scheduler's.

    Args:
        max_depth: how many passes nest on one stack before another thread's stack is used.

    >>> import plugrad
    >>> from plugrad.testing.engines.schedule_explorer import RandomWalk, explore
    >>> from plugrad.testing.engines.explored import explored_engine
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> y = (x * x).sum()
    >>> def program(scheduler):
    ...     with explored_engine(scheduler):
    ...         other = scheduler.start_thread("other", lambda: y.backward(retain_graph=True))
    ...         y.backward(retain_graph=True)
    ...         other.join()
    ...     assert x.grad.tolist() == [4., 4.]
    ...     x.grad = None
    >>> explore(program, RandomWalk(seed=0), 20)
    20
    """
    with running_on(Engine(scheduler, max_depth)) as engine:
        yield engine
        engine.stop()


@contextmanager
def running_on(engine: Engine) -> Iterator[Engine]:
    """Context manager: backward passes run on an engine, with fresh queues of all devices."""
    queues = {active: dict(active.queues) for active in active_backends()}
    before = Tensor._execution_engine
    for active in queues:
        active.queues.clear()
    Tensor._execution_engine = _Explored(engine)
    try:
        yield engine
    finally:
        Tensor._execution_engine = before
        for active, known in queues.items():
            active.queues.clear()
            active.queues.update(known)
