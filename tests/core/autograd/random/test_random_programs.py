"""Random programs: every value, flag, hook call, gradient and error is PyTorch's."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, given

import plugrad
from plugrad.testing.random_programs import (
    Features,
    Program,
    Statement,
    difference,
    programs,
    run_program,
)
from tests.core.drawing import drawn

quick = drawn(60, HealthCheck.function_scoped_fixture)

PURE = Features(writes=False, functions=False, hooks=False, faults=False, changes=False)
WRITES = Features(functions=False, hooks=False, passes=False, faults=False)
HOOKS = Features(writes=False, changes=False)


def assert_same(program: Program, torch: ModuleType) -> None:
    found = difference(run_program(program, plugrad), run_program(program, torch))
    assert found is None, found


@quick
@given(program=programs(PURE))
def test_operators_views_and_passes(program: Program, torch_oracle: ModuleType) -> None:
    assert_same(program, torch_oracle)


@quick
@given(program=programs(WRITES))
def test_writes_to_tensors_and_views(program: Program, torch_oracle: ModuleType) -> None:
    assert_same(program, torch_oracle)


@quick
@pytest.mark.one_thread
@given(program=programs(HOOKS))
def test_hooks_and_functions(program: Program, torch_oracle: ModuleType) -> None:
    assert_same(program, torch_oracle)


@quick
@pytest.mark.one_thread
@given(program=programs())
def test_everything_together(program: Program, torch_oracle: ModuleType) -> None:
    assert_same(program, torch_oracle)


@drawn(250, HealthCheck.function_scoped_fixture)
@pytest.mark.slow
@pytest.mark.one_thread
@given(program=programs(max_steps=24))
def test_many_long_programs(program: Program, torch_oracle: ModuleType) -> None:
    assert_same(program, torch_oracle)


def test_runs_that_part_are_told_apart() -> None:
    """The comparison itself: it must not agree with everything."""
    leaf = Statement("v1 = leaf((2,), 'float64', 1, True)", (), ("v1",))
    hook = Statement("v1.register_hook(hook('hook'))", ("v1",))
    last = Statement("v1.sum().backward()", ("v1",))
    runs = [
        run_program(Program(statements), plugrad)
        for statements in (
            (leaf, hook, last),
            (leaf, Statement("v1.register_hook(hook('hook', 'replace'))", ("v1",)), last),
            (leaf, Statement("None"), last),
            (leaf, hook, Statement("v1.backward()", ("v1",))),
            (leaf, hook, Statement("v1.missing()", ("v1",))),
            (Statement("v1 = leaf((2,), 'float32', 1, True)", (), ("v1",)), hook, last),
        )
    ]
    for i, first in enumerate(runs):
        for j, second in enumerate(runs):
            assert (difference(first, second) is None) == (i == j)


def test_a_program_prints_as_source_that_runs() -> None:
    program = Program(
        (
            Statement("v1 = leaf((2,), 'float64', 1, True)", (), ("v1",)),
            Statement("v1.register_hook(hook('hook of v1'))", ("v1",)),
            Statement("(v1 * v1).sum().backward()", ("v1",)),
        )
    )
    names: dict[str, object] = {}
    exec(program.source("plugrad"), names)
    events, variables = run_program(program, plugrad)
    assert [what for _, what, _ in events] == ["hook of v1"]
    assert variables["v1"]["is_leaf"]
    assert names["v1"].grad is not None  # type: ignore[attr-defined]
