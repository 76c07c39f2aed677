"""Whole steps: backward and an optimizer within the function, Functions, threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import CaptureError
from tests.core.transforms.rerun import names, rerun

nn = plugrad.nn


def losses(captured: bool, kind: str) -> list[float]:
    """Training steps, after a step that makes the optimizer's state."""
    plugrad.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 2)
    )
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, targets = plugrad.randn(6, 3), plugrad.tensor([0, 1, 0, 1, 1, 0])

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = plugrad.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    found = [step(inputs, targets).item()]
    run: Any = step
    if captured:
        graph = rerun(step, inputs, targets)
        run = graph.optimized() if kind == "optimized" else graph
        assert len(graph.gradients) == 6
        assert not graph.check(inputs, targets)
    return found + [run(inputs, targets).item() for _ in range(4)]


@pytest.mark.parametrize("kind", ["as it is", "optimized"])
def test_training(kind: str) -> None:
    expected = losses(False, kind)
    assert losses(True, kind) == pytest.approx(expected, rel=1e-6)
    assert expected[-1] < expected[0]


def test_gradients_that_are_added_to() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    weight.grad = plugrad.ones(2)

    def function(x: Any) -> None:
        (weight * x).sum().backward()

    x = plugrad.tensor([2.0, 3.0])
    graph = rerun(function, x)
    graph(x)
    assert weight.grad.tolist() == [3.0, 4.0]
    weight.grad = plugrad.zeros(2)  # another tensor
    graph(x)
    assert weight.grad.tolist() == [2.0, 3.0]


def test_gradients_are_set_and_cleared() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    weight.grad = plugrad.ones(2)

    def function(x: Any) -> Any:
        weight.grad = None
        (weight * x).sum().backward()
        x.grad = None

    graph = rerun(function, plugrad.ones(2))
    assert list(graph.gradients) == ["c0"]


def test_gradients_of_gradients() -> None:
    def function(x: Any) -> Any:
        (first,) = plugrad.autograd.grad((x**3).sum(), x, create_graph=True)
        return first

    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    graph = rerun(function, x)
    assert plugrad.autograd.grad(graph(x).sum(), x)[0].tolist() == [6.0, 12.0]


class Seven(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.exp()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 7


def test_a_backward_of_ones_own_is_recorded_where_it_runs() -> None:
    x = plugrad.ones(2, requires_grad=True)

    def function(x: Any) -> Any:
        return plugrad.autograd.grad(Seven.apply(x).sum(), x)[0]

    graph = rerun(function, x)
    assert "mul.Scalar" in names(graph)
    assert graph(x).tolist() == [7.0, 7.0]


def test_a_backward_of_ones_own_is_not_lost() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with pytest.raises(CaptureError, match=r"Seven.* has a backward of its own"):
        plugrad.capture(Seven.apply, x)
    graph = plugrad.capture(Seven.apply, plugrad.ones(2))
    with pytest.raises(RuntimeError, match="requires_grad of x0 to be False, found True"):
        graph(x)


def test_leaves_of_the_functions_own() -> None:
    def function(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        return plugrad.autograd.grad((leaf * leaf).sum(), leaf)[0]

    assert rerun(function, plugrad.ones(2))(plugrad.ones(2)).tolist() == [2.0, 2.0]


def test_threads_capture_side_by_side() -> None:
    barrier = threading.Barrier(3)
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        def function(x: Any) -> Any:
            for _ in range(number + 1):
                barrier.wait(10)
                x = x * 2
            for _ in range(2 - number):
                barrier.wait(10)
            return x

        found[number] = plugrad.capture(function, plugrad.ones(2))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(found[number].nodes) for number in range(3)] == [1, 2, 3]


def test_another_thread_is_not_listened_to() -> None:
    def function(x: Any) -> Any:
        thread = threading.Thread(target=lambda: plugrad.ones(2) * 3)
        thread.start()
        thread.join()
        return x + 1

    assert names(plugrad.capture(function, plugrad.ones(2))) == ["add.Scalar"]
