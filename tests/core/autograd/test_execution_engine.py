"""Tensor._execution_engine: the engine can be replaced, and the calls that it gets."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.autograd.variable import Variable
from plugrad.testing import NaiveEngine


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


@pytest.fixture
def engine() -> Iterator[Any]:
    """The present engine; restored afterwards."""
    default = plugrad.Tensor._execution_engine
    yield default
    plugrad.Tensor._execution_engine = default


class Recording:
    """Notes how it is called and leaves the work to another engine."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        return self.engine.run_backward(*args, **kwargs)


def test_backward_and_grad_use_the_engine_of_tensor(engine: Any) -> None:
    recording = Recording(engine)
    plugrad.Tensor._execution_engine = recording
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert plugrad.autograd.grad(y, x)[0].tolist() == [6.0]
    assert x.grad.tolist() == [6.0]
    (first, flags), (second, more_flags) = recording.calls
    assert first[0] == (y,)
    assert [g.item() for g in first[1]] == [1.0]
    assert first[2:] == (True, False, ())
    assert flags == {"allow_unreachable": True, "accumulate_grad": True}
    assert second[2:4] == (False, False)
    assert second[4] == (x,)
    assert more_flags == {"allow_unreachable": False, "accumulate_grad": False}


def test_variable_and_tensor_have_one_engine(engine: Any) -> None:
    recording = Recording(engine)
    Variable._execution_engine = recording
    assert plugrad.Tensor._execution_engine is recording
    leaf(1.0).backward()
    assert len(recording.calls) == 1


def test_an_engine_may_be_a_subclass_of_the_default_one(engine: Any) -> None:
    class Twice(type(engine)):  # type: ignore[misc]  # a class known at run time
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            super().run_backward(args[0], args[1], True, *args[3:], **kwargs)
            return super().run_backward(*args, **kwargs)

    plugrad.Tensor._execution_engine = Twice()
    x = leaf(3.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_callbacks_may_be_queued_while_a_pass_runs(engine: Any) -> None:
    done: list[Any] = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: engine.queue_callback(lambda: done.append(x.grad.tolist())))
    y.sum().backward()
    assert done == [[2.0]]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward"):
        engine.queue_callback(done.clear)


def refusals(lib: Any) -> list[tuple[type[Exception], str]]:
    """What an engine says to calls that `backward` would not make."""
    run = lib.autograd.Variable._execution_engine.run_backward
    x = lib.ones((), requires_grad=True)
    y = x * 2
    one = lib.ones(())
    calls: list[tuple[Any, ...]] = [
        ([y], (one,), True, False),
        ((y,), [one], True, False),
        ((y,), (), True, False),
        ((y,), (1,), True, False),
        ((y,), (None,), True, False),
        ((1,), (None,), True, False),
        ((y,), (one,), True, False, [x]),
        ((y,), (one,), True, False, (1,), True),
        ((one,), (one,), True, False),
        ((y,), (one,), True, False, (one,), True),
        ((y,), (one,), True, False, (one,), True, True),
    ]
    found = []
    for call in calls:
        with pytest.raises((RuntimeError, TypeError)) as caught:
            run(*call)
        found.append((caught.type, str(caught.value)))
    return found


def test_calls_are_refused_as_by_pytorch(torch_oracle: ModuleType) -> None:
    assert refusals(plugrad) == refusals(torch_oracle)


def test_without_accumulation_inputs_must_be_given(engine: Any) -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="grad requires non-empty inputs"):
        engine.run_backward((x,), (plugrad.ones(1),), False, False)


def test_every_tensor_is_a_variable() -> None:
    assert isinstance(leaf(), plugrad.autograd.Variable)
    assert not isinstance(1, plugrad.autograd.Variable)
    assert plugrad.autograd.variable.Variable is Variable is plugrad.autograd.Variable


def test_variable_makes_a_leaf_that_shares_memory() -> None:
    y = leaf() * 2
    made = Variable(y, requires_grad=True)
    assert made.is_leaf
    assert made.requires_grad
    made.data[0] = 7.0
    assert y.tolist() == [7.0, 4.0]
    assert not Variable(y).requires_grad
    assert Variable().shape == (0,)


def test_variable_takes_tensors_only() -> None:
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        Variable(leaf(), volatile=True)


def test_the_function_variable_says_what_to_use() -> None:
    with pytest.raises(RuntimeError, match=r"is deprecated, use plugrad\.tensor"):
        plugrad.autograd.variable(1.0)


def test_multithreading_is_set_at_once_or_for_a_block() -> None:
    is_enabled = plugrad.autograd.is_multithreading_enabled
    assert is_enabled()
    with plugrad.autograd.set_multithreading_enabled(False):
        assert not is_enabled()
        with plugrad.autograd.set_multithreading_enabled(True):
            assert is_enabled()
        assert not is_enabled()
    assert is_enabled()
    plugrad.autograd.set_multithreading_enabled(False)
    assert not is_enabled()
    plugrad.autograd.set_multithreading_enabled(True)


def test_multithreading_may_be_set_for_a_function() -> None:
    is_enabled = plugrad.autograd.is_multithreading_enabled
    asked = plugrad.autograd.set_multithreading_enabled(False)(is_enabled)
    assert is_enabled()
    assert not asked()
    assert is_enabled()


def test_multithreading_mode_is_a_bool() -> None:
    with pytest.raises(TypeError, match="must be bool, not int"):
        plugrad.autograd.set_multithreading_enabled(1)


def test_the_naive_engine_may_take_the_place(engine: Any) -> None:
    naive = NaiveEngine()
    recording = Recording(naive)
    plugrad.Tensor._execution_engine = recording
    done: list[Any] = []
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda grad: naive.queue_callback(lambda: done.append(x.grad.tolist())))
    y.sum().backward(retain_graph=True)
    assert plugrad.autograd.grad(y.sum(), [y, x])[1].tolist() == [6.0]
    assert done == [[6.0], [6.0]]
    assert len(recording.calls) == 2
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward"):
        naive.queue_callback(done.clear)
