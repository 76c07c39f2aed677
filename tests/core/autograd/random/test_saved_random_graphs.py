"""On random graphs: hooks, checkpoints and writes to what is saved change no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import plugrad
from plugrad.autograd.checkpoint import checkpoint
from plugrad.autograd.saved_tensors import (
    allow_mutation_on_saved_tensors,
    save_on_cpu,
    saved_tensors_hooks,
)
from plugrad.testing.random_graphs import Program, programs
from tests.core.drawing import drawn

quick = drawn(30)


def gradients(program: Program, run: Callable[[Program], list[Any]]) -> list[Any]:
    """First and second derivatives, as arrays; None where there are none."""
    values = run(program)
    inputs = [values[i] for i in program.inputs]
    first = plugrad.autograd.grad(
        [values[i].sum() for i in program.outputs], inputs, create_graph=True, allow_unused=True
    )
    again = [grad.sum() for grad in first if grad is not None and grad.requires_grad]
    second: tuple[Any, ...] = ()
    if again:
        second = plugrad.autograd.grad(again, inputs, allow_unused=True)
    return [None if grad is None else grad.detach().numpy() for grad in (*first, *second)]


def plain(program: Program) -> list[Any]:
    return program.run(plugrad)


def packed(program: Program) -> list[Any]:
    with saved_tensors_hooks(lambda t: t.detach().numpy().copy(), plugrad.from_numpy):
        return program.run(plugrad)


def on_cpu(program: Program) -> list[Any]:
    with save_on_cpu():
        return program.run(plugrad)


def checkpointed(program: Program) -> list[Any]:
    values: list[Any] = checkpoint(lambda: program.run(plugrad), use_reentrant=False)
    return values


def checkpointed_to_the_end(program: Program) -> list[Any]:
    values: list[Any] = checkpoint(
        lambda: program.run(plugrad), use_reentrant=False, early_stop=False
    )
    return values


def checkpointed_twice(program: Program) -> list[Any]:
    values: list[Any] = checkpoint(lambda: checkpointed(program), use_reentrant=False)
    return values


@pytest.mark.parametrize(
    "run", [packed, on_cpu, checkpointed, checkpointed_to_the_end, checkpointed_twice]
)
def test_gradients_are_the_same(run: Callable[[Program], list[Any]]) -> None:
    @quick
    @given(programs(max_steps=8))
    def check(program: Program) -> None:
        assert_same(gradients(program, run), gradients(program, plain))

    check()


@quick
@given(programs(max_steps=8))
def test_gradients_are_the_same_when_every_value_is_overwritten(program: Program) -> None:
    def overwritten(program: Program) -> list[Any]:
        values = program.run(plugrad)
        for position, value in enumerate(values):
            # Views have rules of their own about writes to what they are views of.
            aliased = value._shared_storage is not None and value._shared_storage.has_views
            if position not in (*program.inputs, *program.outputs) and not aliased:
                value.detach().fill_(7)
        return values

    with allow_mutation_on_saved_tensors():
        found = gradients(program, overwritten)
    assert_same(found, gradients(program, plain))


def assert_same(actual: list[Any], expected: list[Any]) -> None:
    assert [grad is None for grad in actual] == [grad is None for grad in expected]
    for ours, theirs in zip(actual, expected, strict=True):
        if theirs is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
