"""Recordings of programs that start threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import plugrad
from plugrad.plugins.tracing import is_direct
from plugrad.plugins.watching import read
from tests.viewer.recordings import events, validate


class Worker:
    """A thread that runs functions it is given, one after the other."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._done: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            self._done.put(True)

    def do(self, work: Callable[[], object]) -> None:
        self._work.put(work)
        self._done.get(timeout=60)

    def end(self) -> None:
        self._work.put(None)
        self._thread.join(timeout=60)


def names(data: Any) -> list[str]:
    return [thread["name"] for thread in data["threads"]]


def test_a_thread_that_the_program_starts_has_a_lane_with_its_calls_and_passes() -> None:
    def work() -> None:
        weight = plugrad.ones(3, requires_grad=True)
        (weight * 2).sum().backward()  # the line of the thread

    with plugrad.viewer.record() as recording:
        plugrad.ones(2)
        thread = threading.Thread(target=work, name="the worker")
        thread.start()
        thread.join()
        plugrad.zeros(2)
    data = recording.data
    validate(data)
    assert names(data) == [threading.current_thread().name, "the worker"]
    assert [call["op"] for call in data["calls"] if call["thread"] == 0] == ["ones", "zeros"]
    product = next(call for call in data["calls"] if call["op"] == "mul.Scalar")
    assert product["thread"] == 1
    assert product["source"] is not None
    source, line = product["source"]
    text = data["sources"][source]["lines"][line - data["sources"][source]["first"]]
    assert text.endswith("# the line of the thread")
    assert {event["th"] for event in events(data, "run")} == {1}
    (grad,) = events(data, "grad")
    assert (grad["th"], grad["label"]) == (1, "weight")
    assert all(event["q"] == "the worker" for event in events(data, "pop"))


def test_threads_one_after_the_other_have_a_lane_each() -> None:
    with plugrad.viewer.record() as recording:
        for name in ("first", "second"):
            worker = Worker(name)
            worker.do(lambda: plugrad.ones(2))
            worker.end()
    validate(recording.data)
    assert names(recording.data)[1:] == ["first", "second"]


def test_modules_of_a_thread_own_its_calls() -> None:
    model = plugrad.nn.Linear(3, 4)
    x = plugrad.ones(2, 3)
    with plugrad.viewer.record() as recording:
        worker = Worker("worker")
        worker.do(lambda: model(x))
        worker.end()
    data = recording.data
    validate(data)
    assert [(call["op"], call["thread"], call["module"]) for call in data["calls"]] == [
        ("linear", 1, 0)
    ]


def test_a_thread_that_outlives_the_block_is_heard_no_more_and_pays_nothing() -> None:
    with plugrad.viewer.record() as recording:
        worker = Worker("worker")
        worker.do(lambda: plugrad.ones(2))
    written = len(read(recording._recorder.book))
    traced: list[Any] = []

    def look() -> None:
        plugrad.ones(2)  # the first call finds out that the recording is over
        # Nobody listens to this thread.
        traced.append(is_direct(plugrad.ones(2)))

    worker.do(look)
    worker.end()
    assert len(read(recording._recorder.book)) == written
    assert traced == [True]
    other: list[Any] = []
    late = Worker("late")
    late.do(lambda: other.append(is_direct(plugrad.ones(2))))
    late.end()
    assert other == [True]


def test_threads_that_were_there_before_are_not_recorded() -> None:
    model = plugrad.nn.Linear(3, 4)
    worker = Worker("before")
    worker.do(lambda: plugrad.ones(2))
    with plugrad.viewer.record() as recording:
        worker.do(lambda: model(plugrad.ones(2, 3)))
        plugrad.ones(2)
    worker.end()
    validate(recording.data)
    assert len(names(recording.data)) == 1
    assert [call["op"] for call in recording.data["calls"]] == ["ones"]


def test_a_thread_can_make_a_recording_of_its_own_within_another() -> None:
    inner: list[Any] = []

    def work() -> None:
        with plugrad.viewer.record() as recording:
            plugrad.ones(2)
        plugrad.zeros(2)
        inner.append(recording.data)

    with plugrad.viewer.record() as outer:
        worker = Worker("worker")
        worker.do(work)
        worker.end()
    validate(outer.data)
    assert [call["op"] for call in outer.data["calls"]] == ["ones", "zeros"]
    assert [call["op"] for call in inner[0]["calls"]] == ["ones"]
