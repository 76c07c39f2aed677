"""The engine against the naive one, and against PyTorch, on random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import plugrad
from plugrad.testing import naive_backward, naive_grad
from plugrad.testing.random_graphs import Program, programs
from tests.core.drawing import drawn

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional

quick = drawn(80)


def weights(outputs: list[Any], library: Any, seed: int) -> list[Any]:
    """Output gradients, the same for both libraries."""
    rng = np.random.default_rng(seed)
    return [library.from_numpy(np.asarray(rng.uniform(0.5, 1.5, tuple(t.shape)))) for t in outputs]


def first_order(program: Program, library: Any) -> tuple[list[Any], list[Any], list[Any]]:
    values = program.run(library)
    outputs = [values[i] for i in program.outputs]
    inputs = [values[i] for i in program.inputs]
    return outputs, inputs, weights(outputs, library, program.seed)


def assert_same(actual: Any, expected: Any) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12
        )


@quick
@given(programs())
def test_grad_agrees_with_the_naive_engine(program: Program) -> None:
    outputs, inputs, given_grads = first_order(program, plugrad)
    expected = naive_grad(outputs, inputs, given_grads)
    actual = plugrad.autograd.grad(outputs, inputs, given_grads, allow_unused=True)
    assert_same(actual, expected)


@quick
@given(programs())
def test_backward_agrees_with_the_naive_engine(program: Program) -> None:
    ours, theirs = program.run(plugrad), program.run(plugrad)
    leaves = range(len(program.leaves))
    outputs = [ours[i] for i in program.outputs]
    given_grads = weights(outputs, plugrad, program.seed)
    plugrad.autograd.backward(outputs, given_grads)
    naive_backward([theirs[i] for i in program.outputs], given_grads)
    assert_same([ours[i].grad for i in leaves], [theirs[i].grad for i in leaves])


@quick
@given(programs(max_steps=7))
def test_second_order_agrees_with_the_naive_engine(program: Program) -> None:
    outputs, inputs, given_grads = first_order(program, plugrad)
    naive = naive_grad(outputs, inputs, given_grads, create_graph=True)
    real = plugrad.autograd.grad(outputs, inputs, given_grads, create_graph=True, allow_unused=True)
    assert_same(real, naive)
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(real, naive, strict=True)
        if theirs is not None and theirs.requires_grad
    ]
    if not pairs:
        return
    firsts, seconds = (list(column) for column in zip(*pairs, strict=True))
    assert all(grad.requires_grad for grad in firsts)
    seeds = weights(firsts, plugrad, program.seed + 1)
    actual = plugrad.autograd.grad(firsts, inputs, seeds, allow_unused=True, retain_graph=True)
    assert_same(actual, naive_grad(seconds, inputs, seeds))


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed: make test ORACLE=torch")
@quick
@given(programs())
def test_values_and_gradients_agree_with_torch(program: Program) -> None:
    ours, theirs = first_order(program, plugrad), first_order(program, torch)
    assert_same(ours[0], theirs[0])
    actual = plugrad.autograd.grad(*ours, allow_unused=True)
    expected = torch.autograd.grad(*theirs, allow_unused=True)
    assert_same(actual, expected)


@quick
@given(programs(max_steps=6))
def test_pruning_by_inputs_changes_no_gradient(program: Program) -> None:
    outputs, inputs, given_grads = first_order(program, plugrad)
    together = plugrad.autograd.grad(
        outputs, inputs, given_grads, allow_unused=True, retain_graph=True
    )
    one_by_one = [
        plugrad.autograd.grad(outputs, x, given_grads, allow_unused=True, retain_graph=True)[0]
        for x in inputs
    ]
    assert_same(one_by_one, together)
