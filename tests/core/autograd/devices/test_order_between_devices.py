"""Devices work asynchronously: the engine makes their queues wait for each other.

The oracle is the backend "late", which fails whenever a stream uses what it has not waited for.
"""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine import engine as engine_module
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import LateBackend, NotOrderedError, Stream, ToyBackend
from tests.core.autograd.together import run_together


def values(device: str, *numbers: float) -> Any:
    """A leaf that its device is still working on."""
    return (leaf(device, *numbers) * 1).detach().requires_grad_()


@pytest.fixture
def own_streams(late: LateBackend) -> LateBackend:
    """The caller does not work on the devices' default streams."""
    late.use_own()
    return late


def test_the_oracle_notices_who_does_not_wait(late: LateBackend) -> None:
    x = values("late:0", 1.0, 2.0)
    late.use(0, Stream("another"))
    with pytest.raises(NotOrderedError, match=r"mul.* on another reads what default of 0"):
        x * 2


def test_the_oracle_notices_who_writes_too_early(late: LateBackend) -> None:
    x = plugrad.ones(2, device="late:0").clone()
    queue = late.make_queue(0)
    before = late.current(0)
    queue.fork()  # type: ignore[no-untyped-call]
    x * 2
    late.use(0, queue.stream)  # type: ignore[attr-defined]
    with pytest.raises(NotOrderedError, match=f"add_.* overwrites what {before.name}"):
        x += 1


def test_a_chain_on_one_device(own_streams: LateBackend) -> None:
    x = values("late:0", 1.0, 2.0)
    ((x * x).exp() * x).sum().backward()
    e = plugrad.exp(x.detach() * x.detach())
    assert bool((x.grad == e + 2 * x * x * e).all())


def test_what_the_caller_asked_for_comes_first_on_every_device(own_streams: LateBackend) -> None:
    # The thread of late:1 starts the thread of late:0, which must still wait for the caller.
    x = values("late:0", 2.0)
    y = x * x  # saves a result of the caller's stream
    (y.to("late:1") * 3).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_the_caller_comes_after_all_devices(own_streams: LateBackend) -> None:
    x, y = values("late:0", 2.0), values("late:1", 5.0)
    (x.to("late:1") * y).sum().backward()
    x.grad += 1  # on the caller's stream
    assert (x.grad.tolist(), y.grad.tolist()) == ([6.0], [2.0])


def test_results_that_were_asked_for_are_ordered_too(own_streams: LateBackend) -> None:
    x = values("late:0", 2.0)
    middle = x * x
    y = (middle.to("late:1") * 3).sum()
    grads = plugrad.autograd.grad(y, [x, middle])
    assert [(g * 1).tolist() for g in grads] == [[12.0], [3.0]]


def test_a_diamond_across_devices(own_streams: LateBackend) -> None:
    x = values("late:0", 2.0)
    shared = x * x
    left = (shared.to("late:1") * 3).to("late:3")
    right = (shared.to("late:2") * 5).to("late:3")
    (left + right + shared.to("late:3")).sum().backward()
    assert x.grad.tolist() == [36.0]


class Mover(plugrad.autograd.Function):
    """A copy to another device; the source's device computes its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, device: str) -> Any:
        ctx.device = x.device
        return x.to(device)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0].to(ctx.device) * 1, None


def test_gradients_from_two_devices_are_added_in_order(own_streams: LateBackend) -> None:
    for first, second in (("late:1", "late:2"), ("late:1", "cpu"), ("cpu", "late:1")):
        x = values("late:0", 2.0)
        shared = x * x
        left = Mover.apply(shared, first) * 3
        right = Mover.apply(shared, second) * 5
        own = shared * 7
        total = left.to("late:3") + right.to("late:3") + own.to("late:3")
        total.sum().backward()
        assert (x.grad * 1).tolist() == [60.0]


def test_what_the_host_s_nodes_ask_of_a_device_comes_first(own_streams: LateBackend) -> None:
    x = values("late:0", 2.0)
    shared = x * x
    with plugrad.no_grad():
        scale = values("late:0", 3.0)

    def on_the_host(grad: Any) -> Any:
        return grad.to("late:0") * scale

    class FromHost(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.to("cpu")

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return on_the_host(grads[0])

    own = shared * 7  # its gradient arrives before the host's
    (FromHost.apply(shared) + (own * 2).to("cpu")).sum().backward()
    assert (x.grad * 1).tolist() == [4.0 * (3.0 + 14.0)]


def test_second_order_across_devices(own_streams: LateBackend) -> None:
    x = values("late:0", 2.0)
    y = ((x * x).to("late:1") * x.to("late:1")).sum()
    (first,) = plugrad.autograd.grad(y, x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    assert ((first * 1).tolist(), (second * 1).tolist()) == ([12.0], [12.0])


def test_passes_one_after_the_other_into_the_same_leaf(own_streams: LateBackend) -> None:
    x = values("late:0", 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        x.grad *= 2  # on the caller's stream
    assert x.grad.tolist() == [4.0 * (2 + 4 + 8)]


def test_a_node_s_gradients_on_other_devices_are_waited_for(own_streams: LateBackend) -> None:
    class Two(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x.to("late:1")

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] + (grads[1] * 5).to("late:2")

    x = values("late:2", 2.0)
    here, there = Two.apply(x)
    plugrad.autograd.backward([(here * 3).sum(), (there * 7).sum()])
    assert (x.grad * 1).tolist() == [38.0]


def test_a_thread_that_takes_over_comes_between_the_caller_s_work(own_streams: LateBackend) -> None:
    before = values("late:0", 3.0)
    made: list[Any] = []

    def nested(level: int) -> Any:
        def node(grad: Any) -> None:
            if level == 0:
                made.append(before * 2)
                return
            with plugrad.enable_grad():
                then(leaf("cpu"), nested(level - 1)).sum().backward()

        return node

    then(leaf("cpu"), nested(engine_module.MAX_DEPTH + 1)).sum().backward()
    assert (made[0] * 1).tolist() == [6.0]


def nested(outer: str, inner: str) -> tuple[Any, Any]:
    """A pass on one device from within another's node; its inputs are made by that node."""
    total = values(inner, 0.0)

    def work(grad: Any) -> Any:
        with plugrad.enable_grad():
            x = values(inner, 3.0)
            (x * x + total).sum().backward()
            return (x.grad * 1).to(outer) * grad

    x = values(outer, 1.0)
    then(x, work).sum().backward()
    return x, total


@pytest.mark.parametrize("outer", ["late:0", "cpu"])
@pytest.mark.parametrize("inner", ["late:0", "late:1", "cpu"])
def test_reentrant_passes(late: LateBackend, outer: str, inner: str) -> None:
    x, total = nested(outer, inner)
    assert (x.grad.tolist(), (total.grad * 1).tolist()) == ([6.0], [1.0])


@pytest.mark.parametrize("outer", ["late:0", "cpu"])
@pytest.mark.parametrize("inner", ["late:0", "late:1"])
def test_passes_that_another_thread_takes_over(late: LateBackend, outer: str, inner: str) -> None:
    # Deeper than one stack allows, so that threads of the pool replace the waiting ones.
    depth = engine_module.MAX_DEPTH + 5

    def work(level: int) -> Any:
        def deeper(grad: Any) -> Any:
            if level == 0:
                return grad * 2
            with plugrad.enable_grad():
                device = inner if level % 2 else outer
                y = values(device, 3.0)
                then(y * 1, work(level - 1)).sum().backward()
                return (y.grad * 1).to(grad.device) * grad

        return deeper

    x = values(outer, 1.0)
    then(x * 1, work(depth)).sum().backward()
    assert (x.grad * 1).tolist() == [2.0]


def test_threads_with_streams_of_their_own(late: LateBackend) -> None:
    def work() -> None:
        late.use_own()
        for _ in range(30):
            x = values("late:0", 2.0)
            y = x * x
            (y.to("late:1") * 3 + values("late:1", 1.0)).sum().backward()
            assert (x.grad * 1).tolist() == [12.0]

    run_together(work, work, work)


# How the queue is used, call by call.


def test_the_calls_of_a_pass_on_one_device(toy: ToyBackend) -> None:
    (leaf("toy:1") * 2).sum().backward()
    mine = [(what, thread) for what, device, thread in toy.log if device == 1]
    worker = "plugrad-toy:1"
    assert mine == [
        ("fork", "MainThread"),
        ("push", "MainThread"),
        ("pop", worker),
        ("activate", worker),
        *[("push", worker), ("pop", worker)] * 2,
        ("join", "MainThread"),
    ]


def test_a_device_is_made_current_once_on_its_thread(toy: ToyBackend) -> None:
    for _ in range(5):
        (leaf("toy:1") * 2).sum().backward()
    assert toy.calls("activate") == [("activate", 1, "plugrad-toy:1")]


def test_every_pass_forks_before_it_pushes_and_joins_last(toy: ToyBackend) -> None:
    x = leaf("toy:1")
    (x * 2).sum().backward()
    toy.log.clear()
    (x * 2).sum().backward()
    mine = [what for what, device, _ in toy.log if device == 1]
    assert mine[0] == "fork"
    assert mine[-1] == "join"
    assert mine.count("fork") == mine.count("join") == 1


def test_a_device_waits_for_the_one_its_gradient_comes_from(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    (x.to("toy:1") * 2).sum().backward()
    log = [(what, device) for what, device, _ in toy.log]
    recorded = log.index(("record_event", 1))
    assert log[recorded + 1] == ("wait_event 1", 0)
    assert log[recorded + 2] == ("push", 0)
    assert not toy.calls("record_event", 0)


def test_a_device_s_own_stream_needs_no_events(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    (x * x + x).sum().backward()
    assert not toy.calls("record_event")


def test_an_error_of_a_queue_is_the_pass_s(
    toy: ToyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = leaf("toy:0")
    y = (x * 2).sum()

    def fail(self: Any) -> None:
        raise OSError("the device fell off the bus")

    for method in ("activate", "fork", "push", "record_event"):
        z = (x.to("toy:1") * 2).sum()
        with monkeypatch.context() as patch:
            if method == "push":
                patch.setattr("tests.core.autograd.devices.toy.ToyQueue.push", lambda s, t: fail(s))
            else:
                patch.setattr(f"tests.core.autograd.devices.toy.ToyQueue.{method}", fail)
            with pytest.raises(OSError, match="fell off the bus"):
                z.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]
