"""Who runs a node: one thread per device, the caller for the host; when threads begin and end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE
from plugrad.autograd.engine.ready_queue import ReadyQueue
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import SECONDS, Notes, device_threads, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together


def test_a_device_gets_its_thread_when_it_is_first_needed(toy: ToyBackend) -> None:
    x, y = leaf("toy:1"), leaf("toy:3")
    assert device_threads() == []
    (x * 2).sum().backward()
    assert device_threads() == ["plugrad-toy:1"]
    (y * 2).sum().backward()
    assert device_threads() == ["plugrad-toy:1", "plugrad-toy:3"]


def test_host_graphs_start_no_thread(toy: ToyBackend) -> None:
    (leaf("cpu") * 2).sum().backward()
    assert device_threads() == []
    assert toy.queues_made == []


def test_a_device_has_one_thread_for_all_passes_and_callers(toy: ToyBackend) -> None:
    seen: list[threading.Thread] = []

    def work() -> None:
        for _ in range(20):
            x = leaf("toy:0")
            then(x, lambda grad: seen.append(threading.current_thread())).sum().backward()

    run_together(work, work, work)
    assert len(seen) == 60
    assert len(set(seen)) == 1


def test_each_node_runs_on_the_thread_of_its_device(toy: ToyBackend) -> None:
    notes = Notes()
    x = notes.on(leaf("toy:0"), "first")
    y = notes.on(x.to("toy:1"), "second")
    z = notes.on(y.to("cpu"), "host")
    notes.on(z.to("toy:1"), "third").sum().backward()
    assert notes.all == [
        ("third", "plugrad-toy:1"),
        ("host", threading.current_thread().name),
        ("second", "plugrad-toy:1"),
        ("first", "plugrad-toy:0"),
    ]


def test_hooks_run_on_the_device_s_thread(toy: ToyBackend) -> None:
    notes = Notes()
    x = leaf("toy:2")
    y = x * 2
    y.register_hook(lambda grad: notes.note("tensor"))
    y.grad_fn.register_prehook(lambda grads: notes.note("pre"))
    y.grad_fn.register_hook(lambda outputs, inputs: notes.note("post"))
    x.register_hook(lambda grad: notes.note("leaf"))
    x.register_post_accumulate_grad_hook(lambda tensor: notes.note("accumulated"))
    y.sum().backward()
    assert notes.names == ["tensor", "pre", "post", "leaf", "accumulated"]
    assert set(notes.threads.values()) == {"plugrad-toy:2"}


def test_every_caller_drives_the_host_s_nodes_of_its_own_pass(toy: ToyBackend) -> None:
    def work() -> None:
        for _ in range(20):
            notes = Notes()
            x = notes.on(leaf("cpu"), "below")
            y = notes.on(x.to("toy:0"), "device")
            notes.on(y.to("cpu"), "above").sum().backward()
            me = threading.current_thread().name
            assert notes.threads == {"above": me, "device": "plugrad-toy:0", "below": me}

    run_together(work, work, work)


def test_a_thread_knows_which_device_it_works_for(toy: ToyBackend) -> None:
    workers: list[Any] = []

    def note(grad: Any) -> None:
        workers.append(current_state().worker)

    x = then(leaf("cpu"), note)
    then(then(x.to("toy:1"), note).to("toy:2"), note).sum().backward()
    devices = [None if worker is None else str(worker.device) for worker in workers]
    assert devices == ["toy:2", "toy:1", None]
    assert current_state().worker is None


class Two(plugrad.autograd.Function):
    """Two outputs on devices of choice."""

    @staticmethod
    def forward(ctx: Any, x: Any, devices: tuple[str, str], note: Any) -> Any:
        ctx.device, ctx.note = x.device, note
        return tuple(x.detach().to(device).clone() for device in devices)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.note(grads)
        return plugrad.ones(2, dtype=plugrad.float64, device=ctx.device), None, None


@pytest.mark.parametrize(
    ("devices", "runs_on"),
    [
        (("cpu", "toy:2"), "plugrad-toy:2"),
        (("toy:1", "cpu"), "plugrad-toy:1"),
        (("toy:3", "toy:1"), "plugrad-toy:3"),
        (("cpu", "cpu"), "MainThread"),
    ],
)
def test_a_node_runs_on_its_first_gradient_s_device_that_is_not_the_host(
    toy: ToyBackend, devices: tuple[str, str], runs_on: str
) -> None:
    notes = Notes()
    a, b = Two.apply(leaf("cpu"), devices, lambda grads: notes.note("two"))
    plugrad.autograd.backward([a.sum(), b.sum()])
    assert notes.all == [("two", runs_on)]


def test_without_any_gradient_a_node_runs_on_the_host(toy: ToyBackend) -> None:
    class Nothing(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return None

    notes = Notes()
    x = leaf("toy:0")
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: notes.note(f"mul got {grads[0]}"))
    Nothing.apply(y).sum().backward()
    assert notes.all == [("mul got None", "MainThread")]
    assert x.grad is None


def test_multithreading_can_be_switched_off(toy: ToyBackend) -> None:
    notes = Notes()
    x = notes.on(leaf("toy:0"), "first")
    y = notes.on(x.to("toy:1"), "second")
    with plugrad.autograd.set_multithreading_enabled(False):
        y.sum().backward()
    assert set(notes.threads.values()) == {"MainThread"}
    assert device_threads() == []


def test_the_owner_is_woken_when_the_last_node_ran_elsewhere(toy: ToyBackend) -> None:
    # The caller waits in an empty queue while both devices work.
    waits = threading.Event()
    x = leaf("toy:0")
    y = then(x, lambda grad: None if waits.wait(SECONDS) else 1 / 0)
    caller = threading.Thread(target=y.sum().backward)
    caller.start()
    waits.set()
    caller.join(SECONDS)
    assert not caller.is_alive()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_owner_that_is_a_device_s_thread_is_woken_through_its_queue(toy: ToyBackend) -> None:
    inner = leaf("toy:1")

    def nested(grad: Any) -> None:
        with plugrad.enable_grad():
            (inner * 3).sum().backward()

    then(leaf("toy:0"), nested).sum().backward()
    assert inner.grad.tolist() == [3.0, 3.0]
    assert toy.calls("push", 0)[-2][2] == "plugrad-toy:1"  # the wake; the last push is the leaf's


def test_threads_end_when_told_and_start_again(toy: ToyBackend) -> None:
    first, second = leaf("toy:0"), leaf("toy:1")
    (first.to("toy:1") * second).sum().backward()
    old = {thread for thread in threading.enumerate() if thread.name.startswith("plugrad-")}
    assert len(old) == 2
    ENGINE.stop()
    assert device_threads() == []
    (first.to("toy:1") * second).sum().backward()
    new = {thread for thread in threading.enumerate() if thread.name.startswith("plugrad-")}
    assert len(new) == 2
    assert not new & old
    assert first.grad.tolist() == [2.0, 4.0]


def test_a_stop_lets_passes_that_run_end(toy: ToyBackend) -> None:
    started, go_on = threading.Event(), threading.Event()

    def hold(grad: Any) -> None:
        started.set()
        assert go_on.wait(SECONDS)

    x = leaf("toy:0")
    y = x.to("toy:1") * 2  # a device that has no thread yet, and back to the one that is to stop
    caller = threading.Thread(target=then(y.to("toy:0"), hold).sum().backward)
    caller.start()
    assert started.wait(SECONDS)
    stopping = threading.Thread(target=ENGINE.stop)
    stopping.start()
    go_on.set()
    stopping.join(SECONDS)
    caller.join(SECONDS)
    assert not caller.is_alive()
    assert x.grad.tolist() == [2.0, 2.0]


def test_stops_and_passes_at_once(toy: ToyBackend) -> None:
    def work() -> None:
        for _ in range(50):
            x = leaf("toy:0")
            (x.to("toy:1") * 2).to("toy:0").sum().backward()
            assert x.grad.tolist() == [2.0, 2.0]

    def stop() -> None:
        for _ in range(50):
            ENGINE.stop()

    run_together(work, work, stop)


def test_a_task_put_into_a_closed_queue_is_kept() -> None:
    from plugrad.autograd.engine.primitives import Primitives
    from plugrad.autograd.engine.ready_queue import NodeTask

    queue = ReadyQueue()
    queue.share(Primitives())
    queue.put(NodeTask(None, None, None))
    assert not queue.close_if_empty()
    queue.get()
    assert queue.close_if_empty()
    queue.put(NodeTask(None, None, None))
    assert len(queue) == 1


def test_a_backend_that_takes_another_one_s_name_gets_threads_of_its_own(toy: ToyBackend) -> None:
    (leaf("toy:0") * 2).sum().backward()
    (old,) = (t for t in threading.enumerate() if t.name == "plugrad-toy:0")
    deactivate_backend("toy")
    other = ToyBackend()
    activate_backend(other)
    x = leaf("toy:0")
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert other.calls("activate", 0) == [("activate", 0, "plugrad-toy:0")]
    old.join(SECONDS)
    assert not old.is_alive()


def test_the_thread_that_cannot_start_fails_the_pass_and_not_the_next(
    toy: ToyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = leaf("toy:0")
    y = (x * 2).sum()

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]
