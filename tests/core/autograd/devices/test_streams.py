"""Streams in the engine: a node works where its forward did, and every stream waits for what it
uses.

The oracle is the backend "streams", which fails whenever a stream uses what it has not waited for,
overwrites what another may still read, or is given memory that another may still use.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine import engine as engine_module
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.dispatch.backends.streams import STREAMS
from tests.core.autograd.devices.conftest import stop_threads
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import NotOrderedError
from tests.core.autograd.together import run_together
from tests.core.backends.streams import ChosenStream, StreamsBackend


@pytest.fixture
def streams() -> Iterator[StreamsBackend]:
    stop_threads()
    backend = StreamsBackend()
    activate_backend(backend)
    yield backend
    stop_threads()
    deactivate_backend("streams")


@contextmanager
def on(stream: ChosenStream, index: int = 0) -> Iterator[ChosenStream]:
    """Work on a stream, after the earlier work; no stream waits for it afterwards."""
    backend = stream.backend
    before = backend.current_stream(index)
    stream.wait_event(before.record_event())
    backend.use_stream(index, stream)
    try:
        yield stream
    finally:
        backend.use_stream(index, before)


def wait_for(stream: ChosenStream, index: int = 0) -> None:
    stream.backend.current_stream(index).wait_event(stream.record_event())


def where(backend: StreamsBackend, kernel: str) -> set[str]:
    """The streams that a kernel ran on since somebody last looked."""
    found = {stream for name, stream in backend.ran if name == kernel}
    backend.ran.clear()
    return found


def made(*numbers: float, device: str = "streams:0") -> Any:
    """A leaf that the current stream is still working on."""
    return (leaf(device, *numbers) * 1).detach().requires_grad_()


def test_the_oracle_notices_memory_that_is_handed_out_too_early(streams: StreamsBackend) -> None:
    x = made(1.0)
    side = streams.stream("side")
    with on(side), plugrad.no_grad():
        y = x * 2
    del x
    with pytest.raises(NotOrderedError, match="given memory that side may still be using"):
        plugrad.ones(1, device="streams:0") * 1
    wait_for(side)
    assert (y * 1).tolist() == [2.0]


def test_a_node_works_on_the_stream_of_its_forward(streams: StreamsBackend) -> None:
    x = made(2.0)
    side = streams.stream("side")
    with on(side):
        y = x.exp()
    wait_for(side)
    z = y * y
    streams.ran.clear()
    z.sum().backward()
    ran = dict(streams.ran)
    assert where(streams, "expand") == {"default of 0"}
    assert ran["mul"] == "side"  # exp's gradient is a product
    assert x.grad.device == plugrad.device("streams:0")
    (x.grad * 1).tolist()


def test_two_branches_work_side_by_side_and_meet(streams: StreamsBackend) -> None:
    x = made(2.0)
    left, right = streams.stream("left"), streams.stream("right")
    with on(left):
        a = x.sin()
    with on(right):
        b = x.exp()
    wait_for(left)
    wait_for(right)
    total = (a * b).sum()
    streams.ran.clear()
    total.backward()
    assert where(streams, "cos") == {"left"}
    expected = plugrad.exp(x.detach()) * (plugrad.sin(x.detach()) + plugrad.cos(x.detach()))
    assert (x.grad - expected).abs().tolist()[0] < 1e-12
    del a, b, total
    gc.collect()
    (made(1.0) * 2).tolist()  # whose memory it was given


def test_accumulation_is_on_the_consumer_s_stream(streams: StreamsBackend) -> None:
    x = made(2.0)
    middle = streams.stream("middle")
    with on(middle):
        y = x.exp()
    branches = []
    for name in ("one", "two", "three"):
        branch = streams.stream(name)
        wait_for(middle)
        with on(branch):
            branches.append(y.sin())
        wait_for(branch)
    total = (branches[0] + branches[1] + branches[2]).sum()
    streams.ran.clear()
    total.backward()
    assert where(streams, "add") | where(streams, "add_") <= {"middle"}
    assert x.grad.shape == (1,)
    x.grad.tolist()


def test_a_leaf_s_gradient_is_accumulated_on_the_stream_of_its_accumulator(
    streams: StreamsBackend,
) -> None:
    x = made(2.0)
    side, other = streams.stream("side"), streams.stream("other")
    with on(side):
        keep = x.expand(2)  # makes the accumulator, and keeps it alive
        keep.sum().backward()
    wait_for(side)
    with on(other):
        y = (x * 3).sum()
    wait_for(other)
    streams.ran.clear()
    y.backward()
    assert where(streams, "add_") == {"side"}
    assert (x.grad * 1).tolist() == [5.0]


def test_an_accumulator_that_outlived_its_stream_is_warned_of(streams: StreamsBackend) -> None:
    warn = plugrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch
    x = made(2.0)
    keep = x * 2  # with an accumulator on the default stream
    side = streams.stream("side")

    def elsewhere() -> None:
        with on(side):
            (x * 3).sum().backward()
        wait_for(side)

    try:
        warn(False)
        with warnings.catch_warnings(record=True) as none:
            warnings.simplefilter("always")
            elsewhere()
        warn(True)
        with warnings.catch_warnings(record=True) as once:
            warnings.simplefilter("always")
            (x * 3).sum().backward()
            elsewhere()
            elsewhere()
    finally:
        warn(True)
    assert [str(one.message)[:52] for one in none] == []
    assert [str(one.message)[:52] for one in once] == [
        "The AccumulateGrad node's stream does not match the "
    ]
    assert keep.shape == x.shape


def test_the_caller_s_stream_comes_before_and_after(streams: StreamsBackend) -> None:
    side, caller = streams.stream("side"), streams.stream("caller")
    x = made(2.0)
    with on(side):
        y = (x * x).sum()
    with on(caller):
        wait_for(side)
        seed = plugrad.ones((), device="streams:0", dtype=y.dtype) * 2  # made on the caller's
        y.backward(seed)
        assert (x.grad * 1).tolist() == [8.0]
        x.grad.zero_()
        ((x * 3).sum() + y.detach()).backward()
        x.grad += 1
        assert x.grad.tolist() == [4.0]


def test_what_the_caller_does_to_a_gradient_comes_before_the_next_pass(
    streams: StreamsBackend,
) -> None:
    # The root works on device 1; only the leaf's stream, on device 0, is not the caller's.
    x = made(2.0)
    side, caller = streams.stream("side"), streams.stream("caller")
    with on(side):
        y = x * 3
        z = y.to("streams:1").sum()
    with on(caller):
        wait_for(side)
        x.grad = made(10.0).detach()
        with plugrad.no_grad():
            x.grad.mul_(2)
        z.backward()
        assert (x.grad * 1).tolist() == [23.0]


def test_memory_that_another_stream_still_reads_is_not_handed_out(streams: StreamsBackend) -> None:
    x = made(2.0)
    first = x.sin()
    side = streams.stream("side")
    with on(side):
        last = x.exp()
    wait_for(side)
    # The gradient of `last` is made here, read there and freed; then the gradient of `first` is
    # made.
    total = (first * 2).sum() + (last * 2).sum()
    total.backward()
    (x.grad * 1).tolist()


def test_memory_that_an_addition_still_reads_is_not_handed_out(streams: StreamsBackend) -> None:
    x = made(2.0)
    middle, one, two = (streams.stream(name) for name in ("middle", "one", "two"))
    with on(middle):
        y = x.exp()
    wait_for(middle)
    with on(two):
        early = x.cos() * 2
        second = y.sin()
    with on(one):
        first = y.cos()
    wait_for(one)
    wait_for(two)
    (early + second + first).sum().backward()
    (x.grad * 1).tolist()


def test_results_that_were_asked_for_are_ordered(streams: StreamsBackend) -> None:
    x = made(2.0)
    side = streams.stream("side")
    with on(side):
        middle = x * x
    wait_for(side)
    y = (middle * 3).sum()
    first, second = plugrad.autograd.grad(y, [x, middle])
    assert ((first * 1).tolist(), (second * 1).tolist()) == ([12.0], [3.0])


def test_several_devices_with_streams_of_their_own(streams: StreamsBackend) -> None:
    x = made(2.0)
    zero, one = streams.stream("zero"), streams.stream("one")
    with on(zero), on(one, 1):
        y = (x * 3).to("streams:1")
        z = y * y
    wait_for(zero)
    wait_for(one, 1)
    back = z.to("streams:0") + x
    back.sum().backward()
    assert (x.grad * 1).tolist() == [37.0]


def test_one_stream_needs_no_marks(streams: StreamsBackend) -> None:
    x = made(2.0)
    y = ((x * x) + x.exp()).sum()
    streams.events = 0
    y.backward()
    assert streams.events == 0
    x.grad.tolist()


def test_a_pass_on_another_stream_than_its_caller_s_needs_few_marks(
    streams: StreamsBackend,
) -> None:
    side = streams.stream("side")
    x = made(2.0)
    with on(side):
        y = x
        for _ in range(20):
            y = y * x
        y = y.sum()
    wait_for(side)
    streams.events = 0
    y.backward()
    assert streams.events <= 4
    x.grad.tolist()


def test_threads_keep_the_streams_that_they_chose(streams: StreamsBackend) -> None:
    def work(name: str) -> None:
        mine = streams.stream(name)
        streams.use_stream(0, mine)
        x = made(2.0)
        for _ in range(5):
            (x * x).sum().backward()
        assert streams.current_stream(0) is mine
        assert (x.grad * 1).tolist() == [20.0]

    run_together(lambda: work("one"), lambda: work("two"), lambda: work("three"))


def test_hooks_and_nested_passes_work_on_the_node_s_stream(streams: StreamsBackend) -> None:
    seen: list[str] = []
    x = made(2.0)
    side = streams.stream("side")

    def nested(grad: Any) -> None:
        seen.append(streams.current_stream(0).name)
        inner = (grad.detach() * 1).requires_grad_()
        with plugrad.enable_grad():
            (inner * inner).sum().backward()
        seen.append(streams.current_stream(0).name)
        (inner.grad * 1).tolist()

    with on(side):
        y = then(x * 3, nested) * 2
    wait_for(side)
    (y * 1).sum().backward()
    assert seen == ["side", "side"]
    assert (x.grad * 1).tolist() == [6.0]


def test_deep_nesting_stays_on_the_stream(
    streams: StreamsBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = streams.stream("side")
    depth = engine_module.MAX_DEPTH + 3

    def nest(grad: Any, level: int) -> None:
        if level == 0:
            return
        x = (grad.detach() * 1).requires_grad_()
        with plugrad.enable_grad():
            then(x * 2, lambda inner: nest(inner, level - 1)).sum().backward()
        (x.grad * 1).tolist()

    x = made(2.0)
    with on(side):
        y = then(x * 3, lambda grad: nest(grad, depth))
    wait_for(side)
    y.sum().backward()
    assert (x.grad * 1).tolist() == [3.0]


def test_a_thread_that_stands_in_works_on_the_caller_s_streams(streams: StreamsBackend) -> None:
    side, other = streams.stream("side"), streams.stream("other")
    levels = engine_module.MAX_DEPTH + 2
    reached: list[int] = []
    seen: list[Any] = []

    def current() -> Any:
        return streams.current_stream(0)

    def nest(grad: Any, level: int) -> None:
        x = (grad.detach() * 1).requires_grad_()
        with plugrad.enable_grad():
            with on(other):
                first = then(x * 2, lambda inner: nest(inner, level - 1) if level else None)
                second = x * 3
            with on(streams.stream("caller")) as caller:
                wait_for(other)
                seeds = [plugrad.ones(1, device=x.device, dtype=x.dtype) * 2 for _ in range(2)]
                on_the_host = then(leaf("cpu") * 2, lambda _: seen.append(current()))
                plugrad.autograd.backward([first, second, on_the_host.sum()], [*seeds, None])
                assert seen.pop() is caller
                assert (x.grad * 1).tolist() == [10.0]
            wait_for(caller)
        reached.append(level)

    x = made(2.0)
    with on(side):
        y = then(x * 3, lambda grad: nest(grad, levels))
    wait_for(side)
    y.sum().backward()
    assert len(reached) == levels + 1


def test_without_threads_the_caller_s_stream_is_put_back(streams: StreamsBackend) -> None:
    x = made(2.0)
    side = streams.stream("side")
    with on(side):
        y = (x * x).exp()
    wait_for(side)
    before = streams.current_stream(0)
    with plugrad.autograd.set_multithreading_enabled(False):
        (y * 2).sum().backward()
    assert streams.current_stream(0) is before
    assert x.grad.shape == (1,)
    (x.grad * 1).tolist()


def test_after_an_error_the_caller_s_stream_waits_all_the_same(streams: StreamsBackend) -> None:
    x, w = made(2.0), made(3.0)
    side = streams.stream("side")

    def fail(grad: Any) -> None:
        raise ValueError("no")

    with on(side):
        y = then(x * 3, fail) * w
    wait_for(side)
    with pytest.raises(ValueError, match="no"):
        y.sum().backward()
    assert (w.grad * 1).tolist() == [6.0]


def test_hosts_nodes_between_devices_with_streams(streams: StreamsBackend) -> None:
    x = made(2.0)
    side = streams.stream("side")
    with on(side):
        y = (x * x).to("cpu") * 3
    z = y.to("streams:0") * x
    z.sum().backward()
    assert (x.grad * 1).tolist() == [36.0]


def test_graphs_on_the_host_are_not_asked_about_streams(streams: StreamsBackend) -> None:
    assert STREAMS.active
    x = leaf("cpu")
    (x * 2).sum().backward()
    assert streams.queues_made == []


def test_streams_are_forgotten_with_their_backend(alone: None) -> None:
    backend = StreamsBackend("fleeting")
    activate_backend(backend)
    assert STREAMS.active
    deactivate_backend("fleeting")
    assert not STREAMS.active
