"""Three devices that work asynchronously: order, threads, errors, and every operator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE
from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case
from tests.core.backends.conftest import activated
from tests.core.backends.workers import DEVICES, WorkersBackend

SECONDS = 60.0


@pytest.fixture(scope="module")
def workers() -> Iterator[WorkersBackend]:
    backend = WorkersBackend()
    with activated(backend):
        yield backend
    backend.close()


@pytest.fixture(autouse=True)
def empty_log(workers: WorkersBackend) -> None:
    workers.log.clear()


def test_elementwise_operators_return_before_they_are_done(workers: WorkersBackend) -> None:
    x = plugrad.ones(3, device="workers:1")
    go = threading.Event()
    workers.streams[1].submit(go.wait, SECONDS)
    y = (x * 2 + x).exp()
    assert not y.array.future.done()
    assert (y.shape, y.dtype) == ((3,), plugrad.float32)
    go.set()
    assert y.log().tolist() == pytest.approx([3.0] * 3)


def test_each_device_works_in_its_own_thread(workers: WorkersBackend) -> None:
    for index in range(DEVICES):
        plugrad.ones(2, device=f"workers:{index}").exp().sum().item()
    threads = {device: {t for _, d, t in workers.log if d == device} for device in range(DEVICES)}
    assert threads == {index: {f"workers-{index}_0"} for index in range(DEVICES)}


def test_one_device_does_not_wait_for_another(workers: WorkersBackend) -> None:
    x = plugrad.ones(2, device="workers:0")
    go = threading.Event()
    workers.streams[0].submit(go.wait, SECONDS)
    late = x * 3
    assert (plugrad.ones(2, device="workers:1") * 2).tolist() == [2.0, 2.0]
    assert not late.array.future.done()
    go.set()
    assert late.tolist() == [3.0, 3.0]


def test_backward_runs_on_each_devices_own_thread(workers: WorkersBackend) -> None:
    ENGINE.stop()  # the threads that passes before this one have activated already

    def gradients(*devices: str) -> Any:
        a, b, c = devices
        x = plugrad.arange(4.0, device=a).add(1).requires_grad_()
        y = plugrad.arange(4.0, device=b).sub(2).requires_grad_()
        left = (x.exp() / x).to(c)
        right = (y.sin() * y).to(c)
        (left * right + left.to(a).to(c)).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    found = gradients("workers:0", "workers:1", "workers:2")
    expected = gradients("cpu", "cpu", "cpu")
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs)
    activated_by = {device: thread for what, device, thread in workers.log if what == "activate"}
    assert sorted(activated_by) == [0, 1, 2]
    assert len(set(activated_by.values())) == 3


def test_what_was_written_is_what_is_read(workers: WorkersBackend) -> None:
    x = plugrad.zeros(4, device="workers:2")
    view = x[1:3]
    for step in range(20):
        view.add_(1)
        x.mul_(1.0)
        if step % 5 == 0:
            assert view.tolist() == [step + 1.0] * 2
    assert x.tolist() == [0.0, 20.0, 20.0, 0.0]


def test_an_event_of_one_device_holds_up_another(workers: WorkersBackend) -> None:
    first, second = workers.make_queue(0), workers.make_queue(1)
    go = threading.Event()
    workers.streams[0].submit(go.wait, SECONDS)
    second.wait_event(first.record_event())
    y = plugrad.ones(2, device="cpu").to("workers:1") + 1
    assert not y.array.future.done()
    go.set()
    second.synchronize()
    assert y.array.future.done()
    assert y.tolist() == [2.0, 2.0]


def test_shapes_that_do_not_fit_are_refused_at_once(workers: WorkersBackend) -> None:
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match"):
        plugrad.ones(2, device="workers:0") + plugrad.ones(3, device="workers:0")


def test_an_error_of_a_kernel_reaches_the_caller(workers: WorkersBackend) -> None:
    x = plugrad.ones(2, 2, device="workers:0")
    with pytest.raises(RuntimeError, match="singular"):
        plugrad.linalg.solve(x * 0, x)
    assert (x + 1).tolist() == [[2.0, 2.0]] * 2


def test_threads_of_the_user_share_a_device(workers: WorkersBackend) -> None:
    weight = plugrad.ones(3, device="workers:1", requires_grad=True)
    results: list[Any] = []

    def train(factor: float) -> None:
        (grad,) = plugrad.autograd.grad((weight * factor).exp().sum(), weight)
        results.append((factor, grad.tolist()))

    threads = [threading.Thread(target=train, args=(float(i),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(results) == 6
    for factor, grad in results:
        expected = factor * plugrad.tensor(factor).exp().item()
        assert grad == pytest.approx([expected] * 3, rel=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_operators_give_what_the_cpu_gives(workers: WorkersBackend, case: OpCase) -> None:
    check_case(case, "float64", "workers:1")
    if "float32" in case.dtypes:
        check_case(case, "float32", "workers:2")
