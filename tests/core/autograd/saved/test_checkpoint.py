"""checkpoint: what is kept, what is recomputed and when, and what goes wrong."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)
from plugrad.autograd.saved_tensors import save_on_cpu, saved_tensors_hooks

BOTH = pytest.mark.parametrize("use_reentrant", [True, False])


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


class Counted:
    """A function that counts its calls and the calls of its second half."""

    def __init__(self) -> None:
        self.calls = 0
        self.finished = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        y = x.sin().exp()
        self.finished += 1
        return y.clone()


@BOTH
def test_gradients_are_those_of_the_function(use_reentrant: bool) -> None:
    x, again = leaf(0.3, 0.7), leaf(0.3, 0.7)
    checkpoint(Counted(), x * 2, use_reentrant=use_reentrant).sum().backward()
    Counted()(again * 2).sum().backward()
    assert x.grad.tolist() == again.grad.tolist()


@BOTH
def test_the_function_runs_once_more_in_backward(use_reentrant: bool) -> None:
    function = Counted()
    y = checkpoint(function, leaf(), use_reentrant=use_reentrant)
    assert function.calls == 1
    y.sum().backward()
    assert function.calls == 2


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_intermediate_results_are_not_kept(use_reentrant: bool) -> None:
    inside: list[Any] = []

    def function(x: Any) -> Any:
        y = x.sin()
        inside.append(weakref.ref(y))
        return y.exp() * y

    gc.collect()
    gc.disable()
    try:
        y = checkpoint(function, leaf(), use_reentrant=use_reentrant)
        assert inside[0]() is None
        y.sum().backward()
        assert inside[1]() is None
    finally:
        gc.enable()


def test_nothing_is_left_behind_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        middle = x * 2
        gone = weakref.ref(middle)
        function = Counted()
        forgotten = weakref.ref(function)
        y = checkpoint(
            lambda t, f=function: checkpoint(f, t, use_reentrant=False), middle, use_reentrant=False
        )
        y.sum().backward()
        del middle, y, function
        assert gone() is None
        assert forgotten() is None
    finally:
        gc.enable()


def test_recomputation_stops_early_unless_told_otherwise() -> None:
    def run(**options: Any) -> tuple[int, int]:
        function = Counted()
        checkpoint(function, leaf(), use_reentrant=False, **options).sum().backward()
        return function.calls, function.finished

    # exp saves its result, so its kernel is reached; clone is not.
    assert run() == (2, 1)
    assert run(early_stop=False) == (2, 2)
    with set_checkpoint_early_stop(False):
        assert run() == (2, 2)
        with set_checkpoint_early_stop(True):
            assert run(early_stop=False) == (2, 1)


def test_grad_and_inputs_work_without_a_reentrant_pass_only() -> None:
    x = leaf(0.5)
    (found,) = plugrad.autograd.grad(checkpoint(plugrad.sin, x, use_reentrant=False).sum(), x)
    assert found.tolist() == pytest.approx([0.8775825619])
    message = "checkpoint is incompatible with .grad()"
    with pytest.raises(RuntimeError, match=message):
        plugrad.autograd.grad(checkpoint(plugrad.sin, x, use_reentrant=True).sum(), x)
    with pytest.raises(RuntimeError, match=message):
        checkpoint(plugrad.sin, x, use_reentrant=True).sum().backward(inputs=[x])
    checkpoint(plugrad.sin, x, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == found.tolist()


def test_double_backward() -> None:
    x = leaf(0.5, 1.0)
    y = checkpoint(lambda t: t.exp() * t, x, use_reentrant=False)
    (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx((x.exp() * (x + 2)).tolist())


def test_each_backward_over_a_retained_graph_recomputes() -> None:
    function = Counted()
    x = leaf()
    y = checkpoint(function, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    once = x.grad.tolist()
    y.backward()
    assert function.calls == 3
    assert x.grad.tolist() == pytest.approx([2 * value for value in once])


def test_saved_tensors_can_be_looked_at_outside_of_backward() -> None:
    function = Counted()
    y = checkpoint(lambda t: function(t).exp(), leaf(0.0), use_reentrant=False)
    assert y.grad_fn._saved_result.tolist() == pytest.approx([2.718281828])
    assert y.grad_fn._saved_result.tolist() == pytest.approx([2.718281828])
    assert function.calls == 3
    y.sum().backward()


def test_an_operator_whose_inputs_share_a_saved_tensor_unpacks_it_once() -> None:
    x, w = leaf(), leaf(3.0, 4.0)
    checkpoint(lambda a, b: a.exp() / b.exp(), x, w, use_reentrant=False).sum().backward()
    ratio = ((x - w).exp()).tolist()
    assert x.grad.tolist() == pytest.approx(ratio)
    assert w.grad.tolist() == pytest.approx([-value for value in ratio])


def test_nested_checkpoints_recompute_what_is_around_them() -> None:
    inner, x = Counted(), leaf(0.2, 0.4)

    def outer(t: Any) -> Any:
        return checkpoint(inner, t.cos(), use_reentrant=False).cos()

    y = checkpoint(outer, x, use_reentrant=False)
    y.sum().backward()
    assert inner.calls == 3  # forward, as a part of outer, and for itself
    again = leaf(0.2, 0.4)
    again.cos().sin().exp().cos().sum().backward()
    assert x.grad.tolist() == pytest.approx(again.grad.tolist())


@pytest.mark.parametrize("early_stop", [True, False])
def test_backward_inside_of_the_function(early_stop: bool) -> None:
    def function(t: Any) -> Any:
        y = t.sin()
        z = y.cos()
        (inner,) = plugrad.autograd.grad(z.sum(), t, retain_graph=True)
        return z * inner.detach()

    x, again = leaf(0.2, 0.4), leaf(0.2, 0.4)
    checkpoint(function, x, use_reentrant=False, early_stop=early_stop).sum().backward()
    function(again).sum().backward()
    assert x.grad.tolist() == pytest.approx(again.grad.tolist())


@BOTH
def test_the_random_state_is_that_of_the_first_run(use_reentrant: bool) -> None:
    x = leaf(*[1.0] * 8)
    plugrad.manual_seed(3)
    y = checkpoint(lambda t: t * plugrad.rand(8), x, use_reentrant=use_reentrant)
    plugrad.rand(5)
    before = plugrad.get_rng_state().tolist()
    y.sum().backward()
    assert plugrad.get_rng_state().tolist() == before
    assert x.grad.tolist() == y.tolist()


@BOTH
def test_the_random_state_may_be_left_alone(use_reentrant: bool) -> None:
    x = leaf(*[1.0] * 8)
    y = checkpoint(
        lambda t: t * plugrad.rand(8), x, use_reentrant=use_reentrant, preserve_rng_state=False
    )
    y.sum().backward()
    assert x.grad.tolist() != y.tolist()


@BOTH
def test_the_random_state_of_an_arguments_device(use_reentrant: bool, second_backend: str) -> None:
    x = plugrad.ones(8, device=second_backend, requires_grad=True)

    def function(t: Any) -> Any:
        return t * plugrad.rand(8, device=second_backend)

    y = checkpoint(function, x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_a_function_that_spans_devices_and_runs_a_pass_itself(second_backend: str) -> None:
    def function(a: Any, b: Any) -> Any:
        total = a.exp().sum() + b.exp().sum().cpu()
        (inner,) = plugrad.autograd.grad(total, b, retain_graph=True)
        return a.exp() * a, b.exp() * inner.detach()

    def run(apply: Any) -> list[list[float]]:
        x, w = leaf(), plugrad.tensor([0.5, 1.5], device=second_backend, requires_grad=True)
        p, q = apply(x, w)
        (p.sum() + q.sum().cpu()).backward()
        return [x.grad.tolist(), w.grad.tolist()]

    expected = run(function)
    assert run(lambda *args: checkpoint(function, *args, use_reentrant=False)) == expected


def test_other_arguments_and_outputs() -> None:
    x, w = leaf(), leaf(3.0, 4.0)

    def function(pair: Any, factor: float, *, extra: Any) -> Any:
        return {"product": pair[0].exp() * factor, "sum": [extra.exp(), "text"]}

    out = checkpoint(function, (x, 1), 2.0, use_reentrant=False, extra=w)
    assert out["sum"][1] == "text"
    (out["product"] + out["sum"][0]).sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * x.exp()).tolist())
    assert w.grad.tolist() == pytest.approx(w.exp().tolist())


def test_it_recomputes_recorded_though_backward_does_not_record() -> None:
    modes: list[bool] = []

    def function(t: Any) -> Any:
        modes.append(plugrad.is_grad_enabled())
        return t.exp()

    checkpoint(function, leaf(), use_reentrant=False).sum().backward()
    checkpoint(function, leaf(), use_reentrant=True).sum().backward()
    assert modes == [True, True, False, True]


def test_unrecorded_calls_just_call() -> None:
    with plugrad.no_grad():
        y = checkpoint(plugrad.exp, leaf(), use_reentrant=False)
    assert not y.requires_grad


def test_the_contexts_are_for_the_first_run_and_the_recomputation() -> None:
    events: list[str] = []

    @contextlib.contextmanager
    def noting(name: str) -> Iterator[None]:
        events.append("enter " + name)
        yield
        events.append("leave " + name)

    y = checkpoint(
        plugrad.exp,
        leaf(),
        use_reentrant=False,
        context_fn=lambda: (noting("first"), noting("second")),
        early_stop=False,
    )
    assert events == ["enter first", "leave first"]
    y.sum().backward()
    assert events[2:] == ["enter second", "leave second"]


@BOTH
def test_sequential_gives_what_the_functions_give(use_reentrant: bool) -> None:
    calls: list[int] = []

    def step(number: int) -> Any:
        def run(value: Any) -> Any:
            calls.append(number)
            return value.sin() + number

        return run

    steps = [step(number) for number in range(5)]
    x, again = leaf(), leaf()
    checkpoint_sequential(steps, 2, x, use_reentrant=use_reentrant).sum().backward()
    assert calls[:5] == [0, 1, 2, 3, 4]
    assert sorted(calls[5:]) == [0, 1]  # the last segment is not recomputed
    value = again
    for run in steps:
        value = run(value)
    value.sum().backward()
    assert x.grad.tolist() == pytest.approx(again.grad.tolist())


def test_together_with_other_saved_tensor_hooks() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor.detach()

    x = leaf()
    with saved_tensors_hooks(pack, lambda t: t):
        y = checkpoint(lambda t: t.exp().sin(), x * 2, use_reentrant=False)
    assert len(packed) == 1  # the argument; what is inside belongs to the checkpoint
    y.sum().backward()
    again = leaf()
    with save_on_cpu():
        checkpoint(lambda t: (t * 2).exp().sin(), again, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == pytest.approx(again.grad.tolist())
