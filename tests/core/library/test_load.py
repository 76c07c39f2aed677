"""Operators from YAML that belong to a Library, and the undoing of `plugrad.codegen.load`."""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import pytest

import plugrad
from plugrad.codegen import EntryError, load, operators_of, unload
from plugrad.dispatch import find_operator
from plugrad.library import Library
from plugrad.tensor.calls.overridable import OVERRIDES

CUBE = """
- func: cube(Tensor self) -> Tensor
  composite: cube
  doc: The third power.
"""


def cube(x: plugrad.Tensor) -> plugrad.Tensor:
    return x * x * x


def test_operators_go_with_their_library() -> None:
    with Library("yaml_goes", "DEF") as lib:
        family = lib.load(CUBE, {"cube": cube})
        assert family.cube(plugrad.full((2,), 2.0)).tolist() == [8.0, 8.0]
        assert plugrad.ops.yaml_goes.cube(plugrad.ones(1)).item() == 1.0
        assert find_operator("yaml_goes::cube") is not None
    assert find_operator("yaml_goes::cube") is None
    with Library("yaml_goes", "DEF") as lib:
        lib.load(CUBE, {"cube": cube})


def test_a_file_may_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "powers.yaml"
    path.write_text(CUBE)
    with Library("yaml_file", "DEF") as lib:
        family = lib.load(path, {"cube": cube})
        assert family.__name__ == "yaml_file.powers"


def test_an_impl_library_loads_nothing() -> None:
    with (
        Library("yaml_impl", "IMPL") as lib,
        pytest.raises(RuntimeError, match=r"load\(\) needs a library of kind 'DEF' or 'FRAGMENT'"),
    ):
        lib.load(CUBE, {"cube": cube})


def test_kernels_may_be_given_by_another_library() -> None:
    entry = "- func: plus(Tensor self) -> Tensor\n  differentiable: false\n  doc: One more.\n"
    with Library("yaml_shared", "DEF") as owner, Library("yaml_shared", "IMPL", "CPU") as other:
        family = owner.load(entry)
        other.impl("plus", lambda array: array + 1)
        assert family.plus(plugrad.ones(1)).item() == 2.0


def test_unload_takes_the_operators_back() -> None:
    entries = (
        CUBE + "- func: cube.dim(Tensor self, int dim) -> Tensor\n  composite: other\n  doc: x.\n"
    )
    for _ in range(2):
        family = load(entries, namespace="yaml_undo", functions={"cube": cube, "other": cube})
        assert [op.full_name for op in operators_of(family)] == ["cube", "cube.dim"]
        assert OVERRIDES.functions["yaml_undo", "cube"] is family.cube
        unload(family)
        unload(family)
        assert find_operator("yaml_undo::cube") is None
        assert ("yaml_undo", "cube") not in OVERRIDES.functions


def test_a_recorded_graph_outlives_its_operators() -> None:
    entry = "- func: twice(Tensor self) -> Tensor\n  derivatives:\n    self: grad * 2\n  doc: x.\n"
    x = plugrad.ones(2, requires_grad=True)
    with Library("yaml_graph", "DEF") as lib:
        family = lib.load(entry)
        lib.impl("twice", lambda array: array * 2, "CPU")
        y = family.twice(x)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_what_was_defined_before_an_error_is_taken_back() -> None:
    with Library("yaml_half", "FRAGMENT") as lib:
        lib.define("second(Tensor self) -> Tensor")
        entries = "".join(
            f"- func: {name}(Tensor self) -> Tensor\n  differentiable: false\n  doc: x.\n"
            for name in ("first", "second")
        )
        with pytest.raises(RuntimeError, match="yaml_half::second is defined already"):
            lib.load(entries)
        assert find_operator("yaml_half::first") is None
        assert find_operator("yaml_half::second") is not None


@pytest.mark.parametrize("key", ["prepare", "composite", "explicit"])
def test_a_function_that_nobody_gave_is_named(key: str) -> None:
    more = "" if key == "composite" else "  derivatives:\n    self: grad\n"
    entry = f"- func: f(Tensor self) -> Tensor\n  {key}: chek\n{more}  doc: x.\n"
    message = rf"bad\.yaml: f: {key} names 'chek', which is not among the functions given; did you"
    with pytest.raises(EntryError, match=message):
        load(entry, namespace="yaml_bad", functions={"check": cube}, name="bad")
    with pytest.raises(EntryError, match="which is not a function but of type int"):
        load(entry, namespace="yaml_bad", functions={"chek": 3})
    assert find_operator("yaml_bad::f") is None


def test_an_inplace_form_has_the_example_that_its_entry_gives_it() -> None:
    example = "  example: |\n    >>> 1\n    1\n  example_inplace: |\n    >>> 2\n    2\n"
    entry = f"{CUBE.rstrip()}\n{example}  variants: [function, inplace]\n"
    with Library("yaml_example", "DEF") as lib:
        family = lib.load(entry, {"cube": cube})
        examples = [
            (inspect.getdoc(f) or "").splitlines()[-2:] for f in (family.cube, family.cube_)
        ]
    assert examples == [[">>> 1", "1"], [">>> 2", "2"]]


def test_an_inplace_example_without_an_inplace_form_is_an_error() -> None:
    entry = f"{CUBE.rstrip()}\n  example_inplace: x\n"
    with pytest.raises(EntryError, match="'example_inplace:' is for 'variants: \\[inplace\\]'"):
        load(entry, namespace="yaml_bad", functions={"cube": cube})


def test_an_unknown_name_in_a_derivative_is_named() -> None:
    entry = (
        "- func: f(Tensor self) -> Tensor\n  derivatives:\n    self: sigmoidd(grad)\n  doc: x.\n"
    )
    message = (
        "derivative of self uses 'sigmoidd', .* neither an operator nor .*; did you mean 'sigmoid'"
    )
    with pytest.raises(EntryError, match=message):
        load(entry, namespace="yaml_bad")


def test_an_operator_of_the_file_comes_before_a_function_of_its_name() -> None:
    entries = """
- func: scaled(Tensor self) -> Tensor
  derivatives:
    self: threefold(grad)
  doc: Three times the input.
- func: threefold(Tensor self) -> Tensor
  composite: threefold
  doc: Three times the input.
"""
    calls = []

    def threefold(x: plugrad.Tensor) -> plugrad.Tensor:
        calls.append("composite")
        return x * 3

    with Library("yaml_first", "DEF") as lib:
        family = lib.load(entries, {"threefold": threefold})
        lib.impl("scaled", lambda array: array * 3, "CPU")
        x = plugrad.ones(1, requires_grad=True)
        y = family.scaled(x)
        with plugrad.record_dispatch_trace() as events:
            y.backward()
    assert calls == ["composite"]
    assert "yaml_first::threefold" in [event.op for event in events]


def test_a_check_named_like_an_operator_of_plugrad_does_not_hide_it() -> None:
    entry = """
- func: growth(Tensor self) -> Tensor
  prepare: exp
  derivatives:
    self: grad * exp(self)
  doc: The exponential.
"""

    def exp(self: plugrad.Tensor) -> tuple[plugrad.Tensor]:
        return (self,)

    with Library("yaml_check", "DEF") as lib:
        family = lib.load(entry, {"exp": exp})
        lib.impl("growth", lambda array: array + 1, "CPU")
        x = plugrad.zeros(1, requires_grad=True)
        family.growth(x).backward()
        assert x.grad is not None
        assert x.grad.item() == 1.0


def test_a_function_given_comes_before_an_operator_of_plugrad() -> None:
    entry = "- func: f(Tensor self) -> Tensor\n  derivatives:\n    self: exp(grad)\n  doc: x.\n"
    module = types.ModuleType("functions")
    module.exp = lambda grad: grad * 7  # type: ignore[attr-defined]
    with Library("yaml_given", "DEF") as lib:
        family = lib.load(entry, module)
        lib.impl("f", lambda array: array + 1, "CPU")
        x = plugrad.zeros(1, requires_grad=True)
        family.f(x).backward()
        assert x.grad is not None
        assert x.grad.item() == 7.0
