"""allow_mutation_on_saved_tensors: what was saved is copied before it is written to."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import plugrad
from plugrad.autograd.saved_tensors import allow_mutation_on_saved_tensors

MODIFIED = "variables needed for gradient computation has been modified by an inplace"


def leaf() -> Any:
    return plugrad.tensor([1.0, 2.0, 3.0], dtype=plugrad.float64, requires_grad=True)


def whole(base: Any) -> tuple[Any, Any]:
    return base, base


def modify_view(base: Any) -> tuple[Any, Any]:
    return base, base[1:2]


def modify_base(base: Any) -> tuple[Any, Any]:
    return base[:], base


def modify_other_view(base: Any) -> tuple[Any, Any]:
    return base[1:], base.view(3, 1)[2]


def modify_detached(base: Any) -> tuple[Any, Any]:
    return base, base.detach()


PAIRS = [whole, modify_view, modify_base, modify_other_view, modify_detached]


@pytest.mark.parametrize("pair", PAIRS)
def test_backward_finds_what_was_saved(pair: Any) -> None:
    x = leaf()

    def run() -> None:
        saved, written = pair(x.clone())
        out = (saved * saved).sum()
        written.mul_(10)
        out.backward()

    with pytest.raises(RuntimeError, match=MODIFIED):
        run()
    with allow_mutation_on_saved_tensors():
        run()
    skipped = 1 if pair is modify_other_view else 0
    assert x.grad.tolist() == [0.0, 4.0, 6.0] if skipped else [2.0, 4.0, 6.0]


@pytest.mark.parametrize("write", ["out", "setitem", "copy_", "zero_", "no_grad"])
def test_every_way_of_writing_is_noticed(write: str) -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors():
        y = x.clone()
        out = (y * y).sum()
        with contextlib.nullcontext() if write == "setitem" else plugrad.no_grad():
            if write == "out":
                plugrad.sin(plugrad.ones(3, dtype=y.dtype), out=y.detach())
            elif write == "setitem":
                y[0] = 100
            elif write == "copy_":
                y.copy_(plugrad.zeros(3, dtype=y.dtype))
            elif write == "zero_":
                y.zero_()
            else:
                y += 1
        out.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_one_copy_serves_all_who_saved_the_tensor() -> None:
    with allow_mutation_on_saved_tensors() as context:
        y = leaf().clone()
        first, second = (y * y).sum(), y.exp() * y
        assert len(context.tid_to_weakhandle) == 2  # y, and exp's result
        y.sin_()
        y.sin_()
        assert len(context.cloned) == 1
        first.backward()
        second.sum().backward()


def test_versions_are_copied_one_by_one() -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors() as context:
        y = x.clone()
        first = (y * y).sum()
        y.mul_(2)
        second = (y * y).sum()
        y.mul_(2)
        assert len(context.cloned) == 2
        (first + second).backward()
    assert x.grad.tolist() == [10.0, 20.0, 30.0]


def test_nothing_is_copied_that_is_not_saved_any_more() -> None:
    with allow_mutation_on_saved_tensors() as context:
        y = leaf().clone()
        (y * y).sum().backward()
        y.detach().sin_()
        assert len(context.cloned) == 0
        out = (y * y).sum()
        y.detach().sin_()
        assert len(context.cloned) == 1
        del out
        assert len(context.cloned) == 0


def test_copies_are_not_recorded() -> None:
    with allow_mutation_on_saved_tensors() as context:
        y = leaf().clone()
        out = y * y
        y.mul_(2)
        assert [copy.grad_fn for copy in context.cloned.values()] == [None]
        assert out.grad_fn._saved_self.grad_fn.name() == "CloneBackward0"


def test_double_backward() -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors():
        y = x.clone()
        out = (y**3).sum()
        y.zero_()
        (first,) = plugrad.autograd.grad(out, x, create_graph=True)
        (second,) = plugrad.autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0, 18.0]


def test_backward_outside_of_the_block_is_an_error() -> None:
    with allow_mutation_on_saved_tensors():
        out = (leaf() ** 2).sum()
    message = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    with pytest.raises(AssertionError, match=message):
        out.backward()
    with allow_mutation_on_saved_tensors(), pytest.raises(AssertionError, match=message):
        out.backward()


def test_blocks_do_not_nest_and_the_outer_one_goes_on() -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="contexts cannot be nested"):
            allow_mutation_on_saved_tensors().__enter__()
        y = x.clone()
        out = (y * y).sum()
        y.zero_()
        out.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_the_context_is_cleared_and_writes_are_checked_again() -> None:
    with allow_mutation_on_saved_tensors() as context:
        y = leaf().clone()
        out = (y * y).sum()
        y.mul_(2)
    kept = (context.cloned, context.original, context.tid_to_weakhandle, context.sid_to_tid)
    assert [len(mapping) for mapping in kept] == [0, 0, 0, 0]
    del out
    z = y * y
    y.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()
