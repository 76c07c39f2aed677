"""register_multi_grad_hook: a hook on the gradients of several tensors."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.autograd.graph import register_multi_grad_hook


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values) or [1.0], dtype=lib.float64, requires_grad=True)


class Calls:
    """A hook that notes what it is called with."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, grads: Any) -> None:
        if isinstance(grads, list):
            self.seen.append([None if grad is None else grad.tolist() for grad in grads])
        else:
            self.seen.append(grads.tolist())

    def take(self) -> list[Any]:
        seen, self.seen = self.seen, []
        return seen


def setting(lib: Any, mode: str = "all") -> tuple[Any, Any, Any, Any, Calls, Any]:
    """Two leaves, two results, and a hook on all four."""
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    c, d = a * b, a * b
    calls = Calls()
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), calls, mode=mode)
    return a, b, c, d, calls, handle


def all_in_the_graph(lib: Any) -> Any:
    _, _, c, d, calls, _ = setting(lib)
    (c + d).sum().backward()
    return calls.take()


def some_in_the_graph(lib: Any) -> Any:
    a, _, c, _, calls, _ = setting(lib)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,))
    return calls.take()


def captured_results(lib: Any) -> Any:
    _, _, c, _, calls, _ = setting(lib)
    lib.autograd.grad(c.sum(), c)
    return calls.take()


def captured_leaves(lib: Any) -> Any:
    a, _, c, _, calls, _ = setting(lib)
    with pytest.raises(RuntimeError, match="A leaf node was passed to _will_engine_execute_node"):
        lib.autograd.grad(c.sum(), a)
    return calls.take()


def the_first(lib: Any) -> Any:
    _, _, c, d, calls, _ = setting(lib, "any")
    (c * 3 + d).sum().backward(retain_graph=True)
    (c * 5 + d).sum().backward()
    return calls.take()


def removed(lib: Any) -> Any:
    _, _, c, d, calls, handle = setting(lib)
    with handle as entered:
        (c + d).sum().backward(retain_graph=True)
    (c + d).sum().backward()
    return calls.take(), entered is handle


def the_same_tensor_twice(lib: Any) -> Any:
    a, _, c, d, _, handle = setting(lib)
    handle.remove()
    calls = Calls()
    lib.autograd.graph.register_multi_grad_hook([c, c, a], calls)
    (c + d).sum().backward()
    return calls.take()


def results_are_ignored(lib: Any) -> Any:
    a = leaf(lib, 3.0)
    y = a * 2
    lib.autograd.graph.register_multi_grad_hook((y,), lambda grads: [grads[0] * 10])
    y.sum().backward()
    return a.grad.tolist()


def no_gradient(lib: Any) -> Any:
    class Nothing(lib.autograd.Function):  # type: ignore[misc]  # a class of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> None:
            return None

    a = leaf(lib, 3.0)
    y = a * 2
    z = Nothing.apply(y)
    calls = Calls()
    lib.autograd.graph.register_multi_grad_hook((a, y, z), calls)
    z.sum().backward()
    return calls.take()


def nested(lib: Any) -> Any:
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    c, d = a * b, a * b
    inner = (d * 3).sum()
    calls = Calls()

    def hook(grads: Any) -> None:
        calls(grads)
        if len(calls.seen) < 3:
            inner.backward(retain_graph=True)

    lib.autograd.graph.register_multi_grad_hook((a, c, d), hook)
    (c + d).sum().backward(retain_graph=True)
    return calls.take()


def after_a_failed_pass(lib: Any) -> Any:
    a = leaf(lib, 2.0)
    y = a * 2
    z = y * 3
    calls = Calls()
    lib.autograd.graph.register_multi_grad_hook((z, y, a), calls)
    failing = [True]

    def fail_once(grad: Any) -> None:
        if failing:
            failing.pop()
            raise KeyError

    y.register_hook(fail_once)
    with pytest.raises(KeyError):
        z.sum().backward(retain_graph=True)
    first = calls.take()
    z.sum().backward()
    return first, calls.take()


PROGRAMS = [
    all_in_the_graph,
    some_in_the_graph,
    captured_results,
    captured_leaves,
    the_first,
    removed,
    the_same_tensor_twice,
    results_are_ignored,
    no_gradient,
    nested,
    after_a_failed_pass,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_multi_grad_hooks_run_as_in_pytorch(
    program: Callable[[Any], Any], torch_oracle: ModuleType
) -> None:
    assert program(plugrad) == program(torch_oracle)


def test_the_hook_gets_the_gradients_of_those_that_take_part() -> None:
    assert some_in_the_graph(plugrad) == [[[2.0], [1.0], [1.0], None], [[2.0], None, [1.0], None]]


def test_the_mode_is_one_of_two() -> None:
    with pytest.raises(
        ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got first"
    ):
        register_multi_grad_hook((leaf(plugrad),), print, mode="first")


def test_a_constant_is_refused_or_left_out() -> None:
    tensors = (plugrad.ones(1), leaf(plugrad))
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register_multi_grad_hook(tensors, print)
    calls = Calls()
    register_multi_grad_hook(tensors, calls, mode="any")
    tensors[1].sum().backward()
    assert calls.take() == [[1.0]]


def test_an_error_in_the_hook_reaches_the_caller() -> None:
    def hook(grads: Any) -> None:
        raise KeyError("in hook")

    y = leaf(plugrad) * 2
    register_multi_grad_hook((y,), hook)
    with pytest.raises(KeyError, match="in hook"):
        y.sum().backward()


def test_a_leaf_may_get_its_accumulator_later() -> None:
    a = leaf(plugrad)
    calls = Calls()
    register_multi_grad_hook((a, leaf(plugrad)), calls)
    for factor in (2.0, 3.0):
        (a * factor).sum().backward()
    assert calls.take() == [[[2.0], None], [[3.0], None]]


def test_a_node_that_is_gone_is_not_waited_for() -> None:
    a = leaf(plugrad)
    calls = Calls()
    kept = a * 2
    register_multi_grad_hook((kept, a * 3), calls)
    kept.sum().backward()
    assert calls.take() == [[[1.0], None]]


def test_the_hook_makes_no_reference_cycle() -> None:
    gc.disable()
    try:
        a = leaf(plugrad)
        y, z = a * 2, a * 3
        register_multi_grad_hook((a, y, z), Calls())
        s = (y + z).sum()
        s.backward(retain_graph=True)
        gone = [weakref.ref(a), weakref.ref(y)]
        del a, y, z, s
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("mode", ["all", "any"])
def test_passes_of_several_threads_are_told_apart(mode: str) -> None:
    a = leaf(plugrad, 1.0)
    y, z = a * 2, a * 3
    lock = threading.Lock()
    count = [0]

    def hook(grads: Any) -> None:
        with lock:
            count[0] += 1

    register_multi_grad_hook((y, z), hook, mode=mode)
    total = (y + z).sum()

    def work() -> None:
        for _ in range(20):
            total.backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [80]
