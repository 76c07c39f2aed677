"""checkpoint: what it refuses, warns about, and notices in a recomputation."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import plugrad
from plugrad.autograd.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
)


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


class Changing:
    """Calls one function the first time, another one from then on."""

    def __init__(self, first: Any, then: Any) -> None:
        self.first = first
        self.then = then
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.first(x) if self.calls == 1 else self.then(x)


def recompute_error(first: Any, then: Any, **options: Any) -> str:
    y = checkpoint(Changing(first, then), leaf(), use_reentrant=False, **options)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    return str(caught.value)


def test_fewer_saved_tensors_are_an_error() -> None:
    text = recompute_error(lambda x: x.sin().sin(), lambda x: x.sin())
    assert "A different number of tensors was saved during the original forward and" in text
    assert "saved during forward: 2\nNumber of tensors saved during recomputation: 1." in text


def test_more_saved_tensors_are_an_error_unless_it_stops_early() -> None:
    def longer(x: Any) -> Any:
        return x.sin().sin()

    text = recompute_error(lambda x: x.sin(), longer, early_stop=False)
    assert "trying to save more tensors during recomputation" in text
    y = checkpoint(Changing(lambda x: x.sin(), longer), leaf(), use_reentrant=False)
    y.sum().backward()


def test_fewer_saved_tensors_after_backward_inside_are_an_error_too() -> None:
    def first(x: Any) -> Any:
        plugrad.autograd.grad(x.exp().sum(), x)
        return x.sin().sin()

    # The pass inside recomputes, too; it sees a run that is not complete.
    runs = iter([first, first, lambda x: x + x])
    y = checkpoint(lambda x: next(runs)(x), leaf(), use_reentrant=False, early_stop=False)
    with pytest.raises(CheckpointError, match="did not save a tensor that the original forward"):
        y.sum().backward()


def test_other_metadata_is_an_error_unless_not_checked() -> None:
    def wide(x: Any) -> Any:
        return plugrad.cat([x, x]).sin()

    text = recompute_error(lambda x: x.sin(), wide)
    assert "have different metadata than during the forward pass" in text
    assert "tensor at position 0:\nsaved metadata: {'shape': plugrad.Size([2])" in text
    assert "recomputed metadata: {'shape': plugrad.Size([4])" in text
    y = checkpoint(
        Changing(lambda x: x.float().sin(), lambda x: x.sin()),
        leaf(),
        use_reentrant=False,
        determinism_check="none",
    )
    y.sum().backward()


@pytest.mark.parametrize("by_context", [True, False])
def test_debug_shows_the_operators_of_both_runs(by_context: bool) -> None:
    with set_checkpoint_debug_enabled(True if by_context else None):
        text = recompute_error(
            lambda x: x.sin().cos(), lambda x: x.cos(), **({} if by_context else {"debug": True})
        )
    assert "because you passed `debug=True` to checkpoint" in text
    assert "plugrad::sin(float64[2])   (1 of 2 in original)" in text
    assert "plugrad::cos(float64[2])   (1 of 1 in recompute)" in text
    assert "test_checkpoint_errors.py" in text
    assert "A different number of tensors" in text


def test_arguments_are_checked() -> None:
    x = leaf()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: extra"):
        checkpoint(plugrad.exp, x, use_reentrant=True, extra=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(plugrad.exp, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(plugrad.exp, x, use_reentrant=False, determinism_check="all")
    with pytest.raises(ValueError, match="incompatible with non-default context_fn"):
        checkpoint(plugrad.exp, x, use_reentrant=False, debug=True, context_fn=lambda: ())
    with pytest.raises(ValueError, match="Unexpected keyword arguments: debug"):
        checkpoint_sequential([plugrad.exp], 1, x, use_reentrant=False, debug=True)


def test_a_missing_use_reentrant_warns_and_means_true() -> None:
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed"):
        y = checkpoint(plugrad.exp, leaf())
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter"):
        checkpoint_sequential([plugrad.exp], 1, leaf())


def test_reentrant_warns_if_no_argument_requires_grad() -> None:
    w = leaf()
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(lambda t: t * w, plugrad.ones(2), use_reentrant=True)
    assert not y.requires_grad
    y = checkpoint(lambda t: t * w, plugrad.ones(2), use_reentrant=False)
    assert y.requires_grad


def test_reentrant_needs_an_output_that_requires_grad() -> None:
    y = checkpoint(lambda t: t.detach() * 2, leaf(), use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        y.sum().backward()


def test_a_context_must_not_swallow_errors() -> None:
    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(
            lambda x: 1 / 0,
            leaf(),
            use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(ZeroDivisionError), contextlib.nullcontext()),
        )


def test_an_argument_modified_before_backward_is_an_error() -> None:
    x = leaf() * 1
    y = checkpoint(plugrad.exp, x, use_reentrant=False)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_unpacking_twice_in_one_pass_is_an_error() -> None:
    class Twice(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    y = checkpoint(lambda t: Twice.apply(t.exp()), leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="already unpacked once"):
        y.sum().backward()
