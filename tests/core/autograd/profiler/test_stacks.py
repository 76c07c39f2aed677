"""with_stack: the callers of operators, of backward nodes, and flame graphs made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad.autograd.profiler import FunctionEvent, profile

HERE = Path(__file__).name


def model(x: Any) -> Any:
    return (x * x).movedim(0, 1)


def profiled() -> dict[str, FunctionEvent]:
    x = plugrad.ones(2, 3, requires_grad=True)
    with profile(with_stack=True) as prof:
        model(x).sum().backward()
    assert prof.function_events is not None
    return {event.name: event for event in reversed(prof.function_events)}


def test_the_innermost_caller_is_the_users_line() -> None:
    stack = profiled()["plugrad::movedim"].stack
    assert HERE in stack[0]
    assert stack[0].endswith(": model")
    assert stack[1].endswith(": profiled")
    line = model.__code__.co_firstlineno + 1
    assert f"({line})" in stack[0]


def test_what_an_operator_calls_has_its_stack() -> None:
    outer = profiled()["plugrad::movedim"]
    for child in outer.cpu_children:
        assert child.stack == outer.stack


def test_backward_has_the_stack_of_forward() -> None:
    events = profiled()
    node = events["MulBackward0"]
    assert node.stack[0].endswith(": model")
    assert node.stack == node.cpu_children[0].stack
    assert node.cpu_parent is not None
    assert node.stack == node.cpu_parent.stack


def test_without_it_there_is_none() -> None:
    with profile() as prof:
        plugrad.ones(2)
    assert prof.function_events is not None
    assert prof.function_events[0].stack == []
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks("unused")


def test_averages_may_be_kept_apart_by_caller() -> None:
    x = plugrad.ones(2)
    with profile(with_stack=True) as prof:
        x.exp()
        x.exp()
    assert len(prof.key_averages(group_by_stack_n=1)) == 2
    assert len(prof.key_averages()) == 1
    (first, _) = prof.key_averages(group_by_stack_n=1)
    assert len(first.stack) == 1
    assert "Source Location" in prof.key_averages(group_by_stack_n=1).table()


def test_stacks_are_written_for_flame_graphs(tmp_path: Path) -> None:
    x = plugrad.ones(200, 200)
    with profile(with_stack=True) as prof:
        x @ x
    prof.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines
    for line in lines:
        frames, number = line.rsplit(" ", 1)
        assert int(number) > 0
        assert " " not in frames
        assert frames.endswith("test_stacks_are_written_for_flame_graphs")
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks.txt"), "price")
