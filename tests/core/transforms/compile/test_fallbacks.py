"""Steps that cannot be programs run as they are written, once for each call, and say why."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad

nn = plugrad.nn


def reason_of(step: Any, *args: Any, calls: int = 3) -> str:
    run: Any = plugrad.compile(step)
    for _ in range(calls):
        run(*args)
    assert run.cache_info().hits == 0, run.explain()
    text: str = run.explain()
    return text


def test_a_value_that_python_asks_for() -> None:
    seen: list[float] = []

    def step(x: Any) -> Any:
        seen.append(x.sum().item())
        return x * 2 if x.sum() > 1 else x

    text = reason_of(step, plugrad.ones(2))
    assert "the value of sum is read" in text
    assert "test_fallbacks.py" in text
    assert seen == [2, 2, 2]


def test_branches_are_taken_as_written() -> None:
    run: Any = plugrad.compile(lambda x: x * 2 if x.sum() > 1 else x)
    assert [run(plugrad.tensor([v])).item() for v in (1.0, 2.0, 1.0, 3.0)] == [1, 4, 1, 6]


def test_a_result_that_requires_grad() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    text = reason_of(lambda x: x * weight, plugrad.ones(2))
    assert "a result requires grad, and no backward pass runs within the step" in text
    run: Any = plugrad.compile(lambda x: (x * weight).sum())
    for _ in range(3):
        run(plugrad.ones(2)).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [3, 3]


def test_python_that_the_step_changes() -> None:
    counts = {"calls": 0}
    kept: list[Any] = []

    def counting(x: Any) -> Any:
        counts["calls"] += 1
        return x + 1

    def keeping(x: Any) -> Any:
        kept.append(x + 1)
        return x

    assert "the step changes counts['calls']" in reason_of(counting, plugrad.ones(1))
    assert counts == {"calls": 3}
    assert "the step changes the length of kept" in reason_of(keeping, plugrad.ones(1))
    assert len(kept) == 3


def test_a_variable_that_the_step_changes() -> None:
    calls = 0

    def step(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x + calls

    run: Any = plugrad.compile(step)
    assert [run(plugrad.zeros(1)).item() for _ in range(4)] == [1, 2, 3, 4]


def test_a_tensor_that_outlives_the_step() -> None:
    class Box:
        """Nothing that the walk looks into."""

        __slots__ = ("last",)

    box = Box()

    def step(x: Any) -> Any:
        box.last = x * 3
        return x + 1

    run: Any = plugrad.compile(step)
    for value in (1.0, 2.0, 3.0):
        run(plugrad.tensor([value]))
        assert box.last.item() == 3 * value
    assert "a tensor that mul() made outlives the step" in run.explain()


def test_views_of_what_was_there_before() -> None:
    state = plugrad.zeros(2, 2)
    run: Any = plugrad.compile(lambda: state[0])
    for _ in range(3):
        run().add_(1)
    assert state[0].tolist() == [3, 3]
    assert "shares memory" in run.explain()


def test_two_results_with_one_memory() -> None:
    def step(x: Any) -> Any:
        y = x + 1
        return y, y[0]

    run: Any = plugrad.compile(step)
    for _ in range(3):
        y, part = run(plugrad.zeros(2))
        part.add_(5)
        assert y.tolist() == [6, 1]


def test_an_error_of_the_step_leaves_numbers_of_the_optimizer_as_they_were() -> None:
    model = nn.Linear(1, 1)
    optimizer = plugrad.optim.Adam(model.parameters(), lr=0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        raise KeyError("no such batch")

    run: Any = plugrad.compile(step)
    for count in (1, 2):
        with pytest.raises(KeyError, match="no such batch"):
            run(plugrad.ones(1, 1))
        assert optimizer.param_groups[0]["lr"] == 0.5
        assert type(optimizer.param_groups[0]["lr"]) is float
        steps = [state["step"] for state in optimizer.state.values()]
        assert [step.item() for step in steps] == [count, count]


def test_an_error_of_a_kernel_is_that_of_the_step() -> None:
    weight = plugrad.ones(3, 2)
    run: Any = plugrad.compile(lambda x, i: nn.functional.embedding(i, weight) + x)
    x = plugrad.ones(1, 2)
    for _ in range(3):
        run(x, plugrad.tensor([0]))
    assert run.cache_info().hits == 2
    with pytest.raises(IndexError, match="index out of range"):
        run(x, plugrad.tensor([7]))
    assert run(x, plugrad.tensor([2])).tolist() == [[2, 2]]


def test_an_optimizer_that_asks_for_its_state() -> None:
    model = nn.Linear(1, 1)
    optimizer = plugrad.optim.NAdam(model.parameters())

    def step(x: Any) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    assert "is read" in reason_of(step, plugrad.ones(1, 1), calls=5)


def test_a_whole_number_as_learning_rate_is_what_programs_are_told_apart_by() -> None:
    weight = plugrad.zeros(1, requires_grad=True)
    optimizer = plugrad.optim.SGD([weight], lr=1)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        (x * weight).sum().backward()
        optimizer.step()

    run: Any = plugrad.compile(step)
    for _ in range(4):
        run(plugrad.ones(1))
    assert weight.item() == -4
    optimizer.param_groups[0]["lr"] = 2
    for _ in range(2):
        run(plugrad.ones(1))
    assert weight.item() == -8


def test_a_generator_whose_state_is_set_within_the_step() -> None:
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def step(x: Any) -> Any:
        layer.zero_grad()
        again = plugrad.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        again.sum().backward()
        return again.detach()

    x = plugrad.ones(8, 4)
    run: Any = plugrad.compile(step)
    for _ in range(4):
        result = run(x)
        # Rows with a dropped element give no gradient to the bias.
        assert layer[0].bias.grad.tolist() == [2.0 * int((c != 0).sum()) for c in result.unbind(1)]
    assert "generator of random numbers is set within the step" in run.explain()
