"""When a program is not used: each thing that capturing depended on. Oracle: the step itself."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad

nn = plugrad.nn


def double(x: Any) -> Any:
    return x * 2


def captures_after(run: Any, *calls: tuple[Any, ...]) -> list[int]:
    """How often it had been listened to after each call."""
    found = []
    for args in calls:
        run(*args)
        found.append(run.captures)
    return found


@pytest.mark.parametrize(
    "other",
    [
        plugrad.ones(3),
        plugrad.ones(2, dtype=plugrad.float64),
        plugrad.ones(2, 1),
        plugrad.arange(4.0)[::2],
        plugrad.ones(2, dtype=plugrad.complex64).conj(),
    ],
    ids=["shape", "dtype", "dimensions", "strides", "conjugate"],
)
def test_arguments_of_another_kind_are_captured_again(other: Any) -> None:
    run: Any = plugrad.compile(double)
    x = plugrad.ones(2)
    run(x)
    run(x)
    assert run.captures == 1
    assert plugrad.equal(run(other), other * 2)
    assert run.captures == 2
    assert plugrad.equal(run(x), x * 2)
    assert run.captures == 2


def test_values_of_arguments_that_are_no_tensors() -> None:
    run: Any = plugrad.compile(lambda x, factor: x * factor)
    x = plugrad.ones(2)
    assert captures_after(run, (x, 2.0), (x, 2.0), (x, 3.0), (x, 2.0)) == [1, 1, 2, 2]
    assert run(x, 3.0).tolist() == [3, 3]
    assert run(x, 3).dtype is plugrad.float32  # 3 is not 3.0
    assert run.captures == 3


def test_which_arguments_are_one_tensor() -> None:
    run: Any = plugrad.compile(lambda x, y: x.add_(1) + y)
    for _ in range(2):
        x = plugrad.ones(1)
        assert run(x, x).item() == 4
        assert run(plugrad.ones(1), plugrad.ones(1)).item() == 3


def test_the_modes_of_the_thread() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    run: Any = plugrad.compile(lambda x: x * weight)
    x = plugrad.ones(2)
    with plugrad.no_grad():
        run(x)
        assert not run(x).requires_grad
    assert run(x).requires_grad
    with plugrad.inference_mode():
        assert run(x).is_inference()
    with plugrad.no_grad(), plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        other: Any = plugrad.compile(lambda x: x @ x)
        square = plugrad.ones(2, 2)
        assert other(square).dtype is other(square).dtype is plugrad.bfloat16
    assert other(square).dtype is plugrad.float32


def test_a_gradient_that_is_there_or_not() -> None:
    weight = plugrad.ones(2, requires_grad=True)

    def step(x: Any) -> None:
        (x * weight).sum().backward()

    run: Any = plugrad.compile(step)
    x = plugrad.ones(2)
    for count in (1.0, 2.0, 3.0):
        run(x)
        assert weight.grad is not None
        assert weight.grad.tolist() == [count, count]
    weight.grad = None
    run(x)
    assert weight.grad is not None
    assert weight.grad.tolist() == [1, 1]


def test_a_parameter_that_is_frozen() -> None:
    model = nn.Linear(2, 1)

    def step(x: Any) -> None:
        model.zero_grad()
        model(x).sum().backward()

    run: Any = plugrad.compile(step)
    x = plugrad.ones(1, 2)
    for _ in range(4):
        run(x)
    model.weight.requires_grad_(False)
    model.weight.grad = None
    run(x)
    run(x)
    assert model.weight.grad is None
    assert model.bias.grad is not None


def test_train_and_eval() -> None:
    model = nn.Dropout(1.0)
    run: Any = plugrad.compile(lambda x: model(x))
    x = plugrad.ones(3)
    for _ in range(2):
        model.train()
        assert run(x).sum().item() == 0
        model.eval()
        assert run(x).sum().item() == 3


def test_a_variable_of_the_closure_and_a_global() -> None:
    factor = 2.0
    run: Any = plugrad.compile(lambda x: x * factor)
    x = plugrad.ones(1)
    assert [run(x).item() for _ in range(2)] == [2, 2]
    factor = 3.0
    assert [run(x).item() for _ in range(2)] == [3, 3]


def test_another_parameter_in_the_place_of_one() -> None:
    model = nn.Linear(1, 1, bias=False)
    with plugrad.no_grad():
        run: Any = plugrad.compile(lambda x: model(x))
        x = plugrad.ones(1, 1)
        for value in (1.0, 2.0, 3.0):
            model.weight = nn.Parameter(plugrad.full((1, 1), value))
            assert run(x).item() == value
            assert run(x).item() == value


def test_other_contents_by_data() -> None:
    weight = plugrad.ones(2)
    run: Any = plugrad.compile(lambda x: x * weight)
    x = plugrad.ones(2)
    run(x)
    weight.data = plugrad.full((2,), 3.0)
    assert run(x).tolist() == [3, 3]
    assert run.captures == 1
    weight.data = plugrad.full((1,), 5.0)
    assert run(x).tolist() == [5, 5]
    assert run.captures == 2


def test_it_listens_at_most_a_stated_number_of_times() -> None:
    run: Any = plugrad.compile(double, limit=3)
    for size in range(1, 8):
        assert run(plugrad.ones(size)).shape == (size,)
    assert run.captures == 3
    assert "3 times, which is the limit" in run.explain()
    run(plugrad.ones(1))
    assert run.cache_info().hits == 1


def test_a_listener_of_the_thread_sees_the_operators() -> None:
    run: Any = plugrad.compile(double)
    x = plugrad.ones(2)
    run(x)
    run(x)
    graph = plugrad.capture(run, x)
    assert len(graph.nodes) == 1


def test_transforms_see_the_operators() -> None:
    run: Any = plugrad.compile(lambda x: x * x)
    x = plugrad.arange(3.0)
    run(x[0].clone())
    assert plugrad.func.grad(run)(x[2]).item() == 4
    assert plugrad.vmap(run)(x).tolist() == [0, 1, 4]
