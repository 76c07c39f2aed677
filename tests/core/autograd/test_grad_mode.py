"""no_grad, enable_grad, set_grad_enabled, detach, requires_grad."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad


def leaf() -> Any:
    return plugrad.tensor([1.0, 2.0], requires_grad=True)


def test_no_grad_records_nothing() -> None:
    with plugrad.no_grad():
        y = leaf() * 2
    assert not y.requires_grad
    assert y.grad_fn is None


def test_enable_grad_inside_no_grad_records() -> None:
    with plugrad.no_grad(), plugrad.enable_grad():
        y = leaf() * 2
    assert y.requires_grad


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_context_manager(mode: bool) -> None:
    with plugrad.set_grad_enabled(mode):
        assert plugrad.is_grad_enabled() is mode
    assert plugrad.is_grad_enabled()


def test_set_grad_enabled_takes_effect_at_once() -> None:
    plugrad.set_grad_enabled(False)
    try:
        assert not plugrad.is_grad_enabled()
    finally:
        plugrad.set_grad_enabled(True)


def test_mode_is_restored_after_an_exception() -> None:
    with pytest.raises(KeyError), plugrad.no_grad():
        raise KeyError
    assert plugrad.is_grad_enabled()


def test_one_context_manager_may_be_nested_in_itself() -> None:
    context = plugrad.no_grad()
    with context:
        with context:
            assert not plugrad.is_grad_enabled()
        assert not plugrad.is_grad_enabled()
    assert plugrad.is_grad_enabled()


@pytest.mark.parametrize(
    ("make", "mode"),
    [
        (lambda: plugrad.no_grad(), False),
        (lambda: plugrad.enable_grad(), True),
        (lambda: plugrad.set_grad_enabled(False), False),
    ],
)
def test_as_a_decorator(make: Any, mode: bool) -> None:
    decorator = make()
    plugrad.set_grad_enabled(True)

    @decorator
    def function(a: int, b: int = 2) -> tuple[bool, int]:
        """Documented."""
        return plugrad.is_grad_enabled(), a + b

    assert function.__name__ == "function"
    assert function.__doc__ == "Documented."
    assert function(1, b=5) == (mode, 6)
    assert plugrad.is_grad_enabled()


def test_as_a_decorator_without_parentheses() -> None:
    @plugrad.no_grad
    def function() -> bool:
        return plugrad.is_grad_enabled()

    assert not function()


def test_a_decorated_recursive_function_restores_the_mode() -> None:
    @plugrad.no_grad()
    def function(depth: int) -> bool:
        return function(depth - 1) if depth else plugrad.is_grad_enabled()

    assert not function(3)
    assert plugrad.is_grad_enabled()


def test_a_decorated_generator_runs_in_the_mode_and_its_caller_does_not() -> None:
    @plugrad.no_grad()
    def generator() -> Iterator[bool]:
        received = yield plugrad.is_grad_enabled()
        assert received == "sent"
        try:
            yield plugrad.is_grad_enabled()
        except KeyError:
            yield plugrad.is_grad_enabled()

    values: Any = generator()
    assert next(values) is False
    assert plugrad.is_grad_enabled()
    assert values.send("sent") is False
    assert values.throw(KeyError()) is False
    assert plugrad.is_grad_enabled()
    with pytest.raises(StopIteration):
        next(values)


def test_mode_belongs_to_the_thread() -> None:
    seen: list[bool] = []
    with plugrad.no_grad():
        thread = threading.Thread(target=lambda: seen.append(plugrad.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_shares_memory_and_version_but_no_history() -> None:
    y = leaf() * 2
    d = y.detach()
    assert not d.requires_grad
    assert d.is_leaf
    d.add_(1)
    assert y.tolist() == [3.0, 5.0]
    assert y._version == 1


def test_detach_in_place_cuts_the_history() -> None:
    y = leaf() * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_requires_grad_method_returns_the_tensor() -> None:
    x = plugrad.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad


def test_results_require_grad_if_an_argument_does() -> None:
    x, constant = leaf(), plugrad.ones(2)
    assert (x + constant).requires_grad
    assert not (constant + constant).requires_grad
    assert not (x > 0).requires_grad


def test_leaves_are_what_the_user_made() -> None:
    x = leaf()
    assert x.is_leaf
    assert plugrad.ones(2).is_leaf
    assert not (x * 2).is_leaf
    assert (plugrad.ones(2) * 2).is_leaf


def test_inplace_on_a_leaf_is_allowed_without_grad() -> None:
    x = leaf()
    with plugrad.no_grad():
        x.add_(1)
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [2.0, 3.0]


def test_inplace_with_an_argument_that_requires_grad_makes_a_result() -> None:
    x, y = plugrad.ones(2), leaf()
    x.mul_(y)
    assert x.requires_grad
    assert not x.is_leaf
    x.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
