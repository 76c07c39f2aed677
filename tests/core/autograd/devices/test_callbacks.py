"""Final callbacks: once, in order, when the whole pass is complete, in the thread that called."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import Notes, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together

PLACES = ["cpu", "toy:0"]


def queue_callback(callback: Any) -> None:
    plugrad.autograd.Variable._execution_engine.queue_callback(callback)


@pytest.mark.parametrize("place", PLACES)
def test_once_and_in_order_when_all_is_done(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    x = leaf(place)

    def queue(name: str) -> Any:
        def run(grad: Any) -> None:
            queue_callback(lambda: notes.note(f"{name} {x.grad.tolist()}"))

        return run

    then(then(x, queue("second")).to("toy:1"), queue("first")).sum().backward()
    assert notes.all == [("first [1.0, 1.0]", "MainThread"), ("second [1.0, 1.0]", "MainThread")]
    (x * 1).sum().backward()
    assert len(notes.all) == 2


@pytest.mark.parametrize("place", PLACES)
def test_each_pass_has_its_own(toy: ToyBackend, place: str) -> None:
    notes = Notes()

    def inner(grad: Any) -> None:
        queue_callback(lambda: notes.note("inner"))

    def outer(grad: Any) -> None:
        queue_callback(lambda: notes.note("outer"))
        with plugrad.enable_grad():
            then(leaf("toy:1"), inner).sum().backward()
        notes.note("between")

    then(leaf(place), outer).sum().backward()
    assert notes.names == ["inner", "between", "outer"]


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_may_queue_another(toy: ToyBackend, place: str) -> None:
    notes = Notes()

    def first() -> None:
        notes.note("first")
        queue_callback(lambda: notes.note("second"))

    then(leaf(place), lambda grad: queue_callback(first)).sum().backward()
    assert notes.names == ["first", "second"]


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_may_run_backward(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    y = leaf("toy:1")
    then(x, lambda grad: queue_callback(lambda: (y * 2).sum().backward())).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("place", PLACES)
def test_not_after_an_error(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    x = then(leaf(place), lambda grad: 1 / 0)
    y = then(x, lambda grad: queue_callback(lambda: notes.note("called")))
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    (leaf(place) * 1).sum().backward()
    assert notes.names == []


@pytest.mark.parametrize("place", PLACES)
def test_an_error_of_a_callback_is_raised(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    with pytest.raises(ZeroDivisionError):
        then(x, lambda grad: queue_callback(lambda: 1 / 0)).sum().backward()
    assert current_state().graph_task is None
    assert x.grad.tolist() == [1.0, 1.0]


def test_only_during_a_pass(toy: ToyBackend) -> None:
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward"):
        queue_callback(lambda: None)


def test_none_is_lost_when_devices_queue_them_at_once(toy: ToyBackend) -> None:
    called: list[int] = []
    parts = []
    for index in range(4):
        x = leaf(f"toy:{index}")
        for _ in range(25):
            x = then(x, lambda grad: queue_callback(lambda: called.append(1)))
        parts.append(x.sum())
    for _ in range(5):
        plugrad.autograd.backward(parts, retain_graph=True)
    assert len(called) == 500


def test_callers_get_only_their_own(toy: ToyBackend) -> None:
    def work() -> None:
        me = threading.current_thread().name
        for _ in range(30):
            notes = Notes()

            def queue(grad: Any, notes: Notes = notes) -> None:
                queue_callback(lambda: notes.note("called"))

            then(leaf("toy:0"), queue).sum().backward()
            assert notes.all == [("called", me)]

    run_together(work, work, work)
