"""Random programs, captured: operators, views, writes and backward passes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

import plugrad
from plugrad.testing.random_programs import Features, Program, Stage, programs
from plugrad.transforms.capture import Graph
from tests.core.drawing import drawn

quick = drawn(40)

WRITES = Features(functions=False, hooks=False, faults=False, changes=False, passes=False)
PASSES = Features(functions=False, hooks=False, faults=False, changes=False)


def as_function(
    program: Program, devices: tuple[str, ...] = ("cpu",)
) -> tuple[Callable[[Any], Any], Any]:
    """A program as a function of its leaves, which returns all its tensors; and the leaves."""
    stage = Stage(plugrad, devices)
    leaves: dict[str, Any] = {}
    rest = []
    for statement in program.statements:
        if " = leaf(" in statement.text:
            exec(statement.text, dict(stage.names), leaves)
        else:
            rest.append(statement)

    def function(inputs: dict[str, Any]) -> dict[str, Any]:
        found = {**stage.names, **inputs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for statement in rest:
                if all(found.get(name) is not None for name in statement.uses):
                    exec(statement.text, found)
        return {
            name: value
            for name, value in found.items()
            if name[0] in "vg" and name[1:].isdigit() and isinstance(value, plugrad.Tensor)
        }

    return function, leaves


def assert_runs_again(program: Program, devices: tuple[str, ...] = ("cpu",)) -> None:
    function, leaves = as_function(program, devices)
    before = {name: (leaf.detach().clone(), leaf._version) for name, leaf in leaves.items()}
    graph: Graph | None = None
    try:
        graph = plugrad.capture(function, leaves)
    except RuntimeError as error:
        # The program itself raises, with the same words.
        with pytest.raises(type(error), match=re.escape(str(error))):
            function(as_function(program, devices)[1])
    for name, leaf in leaves.items():
        assert plugrad.equal(leaf, before[name][0])
        assert leaf._version == before[name][1]
        assert leaf.grad is None
        assert leaf.grad_fn is None
    if graph is not None:
        graph.check(leaves)
        for changed in (graph.dead_code(), graph.common_subexpressions(), graph.optimized()):
            changed.check(leaves)


@quick
@given(program=programs(WRITES))
def test_writes_and_views(program: Program) -> None:
    assert_runs_again(program)


@quick
@given(program=programs(PASSES))
def test_backward_passes(program: Program) -> None:
    assert_runs_again(program)


@drawn(8)
@given(program=programs(WRITES, max_steps=8))
def test_writes_and_views_of_immutable_arrays(program: Program) -> None:
    pytest.importorskip("plugrad_jax")
    assert_runs_again(program, ("jax",))
