"""Queues: they keep the engine's order, wait for events, and activate their device in threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.testing.conformance.kit.compare import assert_matches, on_host
from plugrad.testing.conformance.kit.matrix import each, on_devices
from plugrad.testing.conformance.kit.subject import Subject

SECONDS = 30.0
ROUNDS = 5


def new_queue(subject: Subject, device: Any) -> Any:
    """A queue of the backend with a simple one behind it, first in, first out."""
    made = subject.backend.make_queue(device.index or 0)
    made.ready = Ready()
    return made


class Ready:
    """A replacement for the engine's priority queue."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, item: Any) -> None:
        self._items.put(item)

    def get(self) -> Any:
        return self._items.get(timeout=SECONDS)


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns, or raises, on a thread of its own."""
    found: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it does not come back"
    if errors:
        raise errors[0]
    return found[0]


@each("device", on_devices)
def test_tasks_come_out_as_they_are_given(subject: Subject, device: Any) -> None:
    made = new_queue(subject, device)
    tasks = [object() for _ in range(20)]
    for task in tasks:
        made.push(task)
    taken = [made.pop() for _ in tasks]
    assert all(a is b for a, b in zip(taken, tasks, strict=True)), "the order is the engine's"


@each("device", on_devices)
def test_pop_waits_for_a_push(subject: Subject, device: Any) -> None:
    made = new_queue(subject, device)
    task = object()
    timer = threading.Timer(0.01, made.push, [task])
    timer.start()
    assert in_thread(made.pop) is task
    timer.join()


@each("device", on_devices)
def test_a_queue_belongs_to_its_device(subject: Subject, device: Any) -> None:
    """Each call makes one; the core keeps it."""
    index = device.index or 0
    assert subject.active.queue(index) is subject.active.queue(index)
    first, second = new_queue(subject, device), new_queue(subject, device)
    first.push("mine")
    second.push("other")
    assert (second.pop(), first.pop()) == ("other", "mine")


@each("device", on_devices)
def test_a_thread_is_activated_and_works(subject: Subject, device: Any) -> None:
    made = new_queue(subject, device)

    def work() -> Any:
        made.activate()
        made.fork()
        x = subject.tensor([1.0, 2.0], device=device)
        y = x + x
        made.synchronize()
        return y.tolist()

    assert in_thread(work) == [2.0, 4.0]


def test_events_pass_between_devices(subject: Subject) -> None:
    """In every order, also of a device with itself, and before any work."""
    queues = [new_queue(subject, device) for device in subject.devices]
    for first in queues:
        for second in queues:
            second.wait_event(first.record_event())
    for made in queues:
        made.fork()
        made.join()
        made.synchronize()
    for index in range(len(subject.devices)):
        subject.backend.synchronize(index)


@each("device", on_devices)
def test_an_event_orders_two_streams_of_a_device(subject: Subject, device: Any) -> None:
    """After a thread of another queue has waited for the event, it reads the first queue's
    results."""
    subject.needs("mm", "mul.Scalar")
    first, second = new_queue(subject, device), new_queue(subject, device)
    x = subject.random(32, 32, device=device)
    first.fork()
    second.fork()

    def produce() -> tuple[Any, Any]:
        first.activate()
        y = x
        for _ in range(10):
            y = (y @ x) / 4
        return y, first.record_event()

    def consume() -> Any:
        second.activate()
        second.wait_event(event)
        return on_host(y * 2)

    y, event = in_thread(produce)
    found = in_thread(consume)
    first.join()
    assert bool((abs(found - 2 * on_host(y)) < 1e-5).all())


@each("device", on_devices)
def test_synchronize_waits_for_the_result(subject: Subject, device: Any) -> None:
    subject.needs("mm")
    x = subject.random(32, 32, device=device)
    y = x
    for _ in range(10):
        y = (y @ x) / 4
    subject.backend.synchronize(device.index or 0)
    host = plugrad.tensor(on_host(x))
    expected = host
    for _ in range(10):
        expected = (expected @ host) / 4
    # After all is done, its memory can be read as it is.
    found = plugrad.from_numpy(subject.backend.to_host(y.array)).to(expected.dtype)
    assert bool(((found - expected).abs() < 1e-3).all())


def noting(seen: list[int], number: int) -> Callable[[Any], None]:
    return lambda grad: seen.append(number)


def order_of_nodes(device: Any, dtype: str) -> list[int]:
    """The order in which backward comes to the branches of a graph."""
    seen: list[int] = []
    x = plugrad.tensor([1.0, 2.0], dtype=getattr(plugrad, dtype)).to(device).requires_grad_()
    total = x * 0
    for number in range(12):
        branch = x * number
        branch.register_hook(noting(seen, number))
        total = total + branch if number % 3 else branch + total
    total.sum().backward()
    return seen


@each("device", on_devices)
def test_backward_runs_in_the_engines_order(subject: Subject, device: Any) -> None:
    expected = order_of_nodes("cpu", subject.floating)
    for _ in range(ROUNDS):
        assert order_of_nodes(device, subject.floating) == expected


def across(first: Any, second: Any, values: Any) -> list[Any]:
    """A graph that alternates between two devices, and uses of its gradients."""
    x = values.clone().to(first).requires_grad_()
    w = values.clone().to(second).requires_grad_()
    moved = (x * 2).to(second)
    y = (moved * w).exp()
    z = y.to(first) * x + x
    for _ in range(5):
        z = z * x - z.to(second).to(first) / 2
    (z.sum() + (w * w).sum().to(first)).backward()
    # The caller goes on with the gradients at once.
    return [z.detach(), x.grad * 2, w.grad * 2]


def test_gradients_across_devices(subject: Subject) -> None:
    values = plugrad.tensor([[0.5, -0.25], [1.0, 0.125]], dtype=getattr(plugrad, subject.floating))
    expected = across("cpu", "cpu", values)
    for first in subject.devices:
        for second in subject.devices:
            for _ in range(ROUNDS):
                found = [result.cpu() for result in across(first, second, values)]
                for ours, theirs in zip(found, expected, strict=True):
                    assert bool(((ours - theirs).abs() < 1e-4).all())


def test_gradients_across_devices_from_another_thread(subject: Subject) -> None:
    values = plugrad.tensor([[0.5, -0.25], [1.0, 0.125]], dtype=getattr(plugrad, subject.floating))
    expected = across("cpu", "cpu", values)
    last = subject.devices[-1]
    found = in_thread(lambda: [result.cpu() for result in across(subject.device, last, values)])
    for ours, theirs in zip(found, expected, strict=True):
        assert bool(((ours - theirs).abs() < 1e-4).all())


class Carried(plugrad.autograd.Function):
    """A copy to another device; that device's thread computes its gradient on the first one."""

    @staticmethod
    def forward(ctx: Any, x: Any, device: Any) -> Any:
        ctx.device = x.device
        return x.to(device)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0].to(ctx.device) * 1, None


def test_gradients_that_other_devices_computed(subject: Subject) -> None:
    """They are added up, and used, only when they are there."""
    subject.needs("mul.Tensor", "add.Tensor", "sum")
    first, last = subject.devices[0], subject.devices[-1]
    for one, two in ((last, first), (first, last), (last, last), (last, "cpu"), ("cpu", last)):
        for _ in range(ROUNDS):
            x = subject.tensor([2.0, -1.0]).requires_grad_()
            shared = x * x
            left, right = Carried.apply(shared, one) * 3, Carried.apply(shared, two) * 5
            total = left.to(last) + right.to(last) + (shared * 7).to(last)
            total.sum().backward()
            assert (x.grad * 1).tolist() == [60.0, -30.0]


def test_a_gradient_that_the_caller_computed_on_the_device(subject: Subject) -> None:
    """Backward starts from a result that the calling thread has only just requested."""
    subject.needs("mm")
    x = subject.random(16, 16).requires_grad_()
    y = x * x
    weight = subject.random(16, 16, seed=1)
    for _ in range(5):
        weight = weight @ weight / 4
    y.backward(weight)
    assert_matches(subject, x.grad, _on_cpu(x, weight), slack=5)


def _on_cpu(x: Any, weight: Any) -> Any:
    return 2 * x.detach().cpu() * weight.detach().cpu()


def test_an_error_on_the_device_reaches_the_caller(subject: Subject) -> None:
    def fail(grad: Any) -> None:
        raise ValueError("from a hook")

    x = subject.tensor([1.0, 2.0]).requires_grad_()
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(ValueError, match="from a hook"):
        y.sum().backward()
    (x * 3).sum().backward()
    assert on_host(x.grad).tolist() == [3.0, 3.0]
