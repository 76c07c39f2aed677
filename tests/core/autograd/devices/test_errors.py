"""Errors in nodes: the first one is raised in the caller, as it was, and only its pass ends."""

from __future__ import annotations

import gc
import threading
import time
import traceback
import weakref
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import SECONDS, Notes, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together

PLACES = ["cpu", "toy:0"]


class OddError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, one: int, *, two: int) -> None:
        super().__init__(f"{one} and {two}")


def until_the_pass_has_failed(grad: Any) -> None:
    """Hold a node until another one of its pass has raised."""
    task = current_state().graph_task
    end = time.monotonic() + SECONDS
    while task.error is None:
        assert time.monotonic() < end
        time.sleep(0.0001)


@pytest.mark.parametrize("place", PLACES)
def test_the_caller_gets_the_very_error_with_its_traceback(toy: ToyBackend, place: str) -> None:
    error = OddError(1, two=2)

    def breaks_down(grad: Any) -> None:
        raise error

    with pytest.raises(OddError) as caught:
        then(leaf(place), breaks_down).sum().backward()
    assert caught.value is error
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "breaks_down"
    assert names[0] == "test_the_caller_gets_the_very_error_with_its_traceback"
    assert error.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration])
def test_errors_of_every_kind_come_from_a_device(toy: ToyBackend, kind: Any) -> None:
    def fail(grad: Any) -> None:
        raise kind("told so")

    with pytest.raises(kind, match="told so"):
        then(leaf("toy:0"), fail).sum().backward()


@pytest.mark.parametrize("where", ["hook", "prehook", "posthook", "leaf", "accumulated"])
def test_errors_of_hooks_come_from_a_device(toy: ToyBackend, where: str) -> None:
    def fail(*args: Any) -> None:
        raise OddError(1, two=2)

    x = leaf("toy:0")
    y = x * 2
    if where == "hook":
        y.register_hook(fail)
    elif where == "prehook":
        y.grad_fn.register_prehook(fail)
    elif where == "posthook":
        y.grad_fn.register_hook(fail)
    elif where == "leaf":
        x.register_hook(fail)
    else:
        x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(OddError):
        y.sum().backward()


@pytest.mark.parametrize("second", ["cpu", "toy:1"])
def test_the_first_error_wins(toy: ToyBackend, second: str) -> None:
    running = threading.Event()

    def fail_first(grad: Any) -> None:
        assert running.wait(SECONDS)
        raise ValueError("first")

    def fail_second(grad: Any) -> None:
        running.set()
        until_the_pass_has_failed(grad)
        raise TypeError("second")

    a, b = then(leaf("toy:0"), fail_first), then(leaf(second), fail_second)
    with pytest.raises(ValueError, match="first"):
        plugrad.autograd.backward([a.sum(), b.sum()])


@pytest.mark.parametrize("other", ["cpu", "toy:0", "toy:1"])
def test_nothing_of_the_pass_starts_after_an_error(toy: ToyBackend, other: str) -> None:
    notes = Notes()
    running = threading.Event()
    x = leaf(other)
    late = notes.on(notes.on(x, "later"), "later")

    def hold(grad: Any) -> None:
        running.set()
        if other != "toy:0":
            until_the_pass_has_failed(grad)

    def fail(grad: Any) -> None:
        assert running.wait(SECONDS)
        raise ValueError

    held = then(late, hold)
    failing = then(leaf("toy:0"), fail)
    if other == "toy:0":  # one thread: the failing node goes first
        held = then(late, lambda grad: notes.note("later"))
        running.set()
        failing = then(leaf("toy:0"), fail)
    with pytest.raises(ValueError):
        plugrad.autograd.backward([held.sum(), failing.sum()])
    (leaf("toy:0") * leaf("toy:0")).sum().backward()  # what was queued has been passed over
    (leaf("toy:1") * leaf("toy:1")).sum().backward()
    assert notes.names == []
    assert x.grad is None


def test_the_caller_waits_for_nodes_that_run(toy: ToyBackend) -> None:
    ended: list[bool] = []
    running = threading.Event()

    def slow(grad: Any) -> None:
        running.set()
        until_the_pass_has_failed(grad)
        time.sleep(0.01)
        ended.append(True)

    def fail(grad: Any) -> None:
        assert running.wait(SECONDS)
        raise ValueError

    a, b = then(leaf("toy:0"), slow), then(leaf("toy:1"), fail)
    with pytest.raises(ValueError):
        plugrad.autograd.backward([a.sum(), b.sum()])
    assert ended == [True]


def test_other_passes_on_the_same_threads_go_on(toy: ToyBackend) -> None:
    def failing() -> None:
        for _ in range(50):
            x = leaf("toy:0")
            y = then(x, lambda grad: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                (y.to("toy:1") * 2).sum().backward()
            assert x.grad is None

    def working() -> None:
        for _ in range(50):
            x = leaf("toy:1")
            ((x * 3).to("toy:0") * 2).sum().backward()
            assert x.grad.tolist() == [6.0, 6.0]

    run_together(failing, failing, working, working)


@pytest.mark.parametrize("place", PLACES)
def test_the_same_graph_can_run_after_an_error(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    failing = [True]

    def fail(grad: Any) -> None:
        if failing[0]:
            raise ValueError

    y = then(x * 1, fail)
    z = (y * y + y.to("toy:1").to(place) * 3).sum()
    for _ in range(3):
        failing[0] = True
        with pytest.raises(ValueError):
            z.backward(retain_graph=True)
        assert x.grad is None
        failing[0] = False
        z.backward(retain_graph=True)
        assert x.grad.tolist() == [5.0, 7.0]
        x.grad = None


def test_an_error_in_an_inner_pass_ends_the_outer_ones(toy: ToyBackend) -> None:
    error = OddError(1, two=2)

    def fail(grad: Any) -> None:
        raise error

    def inner(device: str, function: Any) -> Any:
        def run(grad: Any) -> None:
            with plugrad.enable_grad():
                then(leaf(device), function).sum().backward()

        return run

    x = leaf("toy:0")
    with pytest.raises(OddError) as caught:
        then(x, inner("toy:1", inner("toy:0", inner("cpu", fail)))).sum().backward()
    assert caught.value is error
    assert x.grad is None


def test_an_inner_error_that_is_caught_ends_nothing_else(toy: ToyBackend) -> None:
    def inner(grad: Any) -> None:
        with plugrad.enable_grad(), pytest.raises(ZeroDivisionError):
            then(leaf("toy:1"), lambda grad: 1 / 0).sum().backward()

    x = leaf("toy:0")
    then(x, inner).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_failed_pass_keeps_nothing_alive(toy: ToyBackend) -> None:
    (leaf("toy:0").to("toy:1") * 2).sum().backward()
    gc.collect()
    gc.disable()
    try:
        x = leaf("toy:0")
        y = x * 1
        z = then(y, lambda grad: {}["missing"]).to("toy:1") * 2
        with pytest.raises(KeyError):
            z.sum().backward()
        gone = weakref.ref(y)
        del y, z
        (leaf("toy:0").to("toy:1") * 2).sum().backward()  # the threads have released their tasks
        assert gone() is None
    finally:
        gc.enable()


def test_a_pass_that_succeeded_keeps_nothing_alive(toy: ToyBackend) -> None:
    gc.collect()
    gc.disable()
    try:
        y = leaf("toy:0") * 1
        (y.to("toy:1") * 2).sum().backward()
        gone = weakref.ref(y)
        del y
        (leaf("toy:0").to("toy:1") * 2).sum().backward()
        assert gone() is None
    finally:
        gc.enable()
