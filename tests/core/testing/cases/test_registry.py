"""Cases are found by operator, come with plugins, and need no PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.plugins import get_manager, hookimpl
from plugrad.testing.cases import (
    OpCase,
    OpSample,
    T,
    all_cases,
    calls,
    cases_of,
    core_cases,
    register,
    resolve,
)

HALVE = OpCase("toolbox::halve", calls((T((2, 3)),)))
CASES = [HALVE]


def many() -> list[OpCase]:
    return [HALVE, HALVE]


@contextmanager
def plugin(answer: Any) -> Iterator[None]:
    def plugrad_cases() -> Any:
        return answer() if callable(answer) else answer

    module = ModuleType("toolbox")
    vars(module)["plugrad_cases"] = hookimpl(plugrad_cases)
    get_manager().register(module, "toolbox")
    try:
        yield
    finally:
        get_manager().unregister("toolbox")


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ([HALVE], 1),
        ([f"{__name__}:CASES"], 1),
        ([f"{__name__}:many", HALVE], 3),
        (f"{__name__}:CASES", 1),
    ],
)
def test_a_plugin_brings_cases(answer: Any, count: int) -> None:
    with plugin(answer):
        assert cases_of("toolbox::halve") == [HALVE] * count
    assert cases_of("toolbox::halve") == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([3], "expected an OpCase, got int"),
        (["nowhere.at.all:CASES"], "No module named 'nowhere'"),
        (["nowhere"], "expected 'module:attribute', got 'nowhere'"),
        (7, "must return a list, got int"),
        (lambda: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_plugin_whose_cases_cannot_be_used_spoils_no_others(answer: Any, problem: str) -> None:
    words = rf"plugin 'toolbox', plugrad_cases\(\): .*{problem}"
    with plugin(answer), pytest.warns(UserWarning, match=words):
        assert len(all_cases()) >= len(core_cases())


def test_registered_cases_go_when_asked() -> None:
    remove = register(HALVE, HALVE)
    assert cases_of("toolbox::halve") == [HALVE, HALVE]
    remove()
    assert cases_of("toolbox::halve") == []
    with pytest.raises(TypeError, match=r"register\(\): expected an OpCase, got str"):
        register("halve")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["mul", "mul.Tensor", "plugrad::mul.Tensor", "mul_", "Tensor.mul", "plugrad::mul"]
)
def test_an_operator_is_found_by_any_of_its_names(name: str) -> None:
    assert {case.op for case in cases_of(name)} == {"mul"}


def test_another_namespace_is_another_operator() -> None:
    assert cases_of("elsewhere::mul") == []


def test_every_case_of_the_core_names_a_function() -> None:
    for case in core_cases():
        assert callable(resolve(case.op))
        samples = case.all_samples()
        assert samples or case.errors, case.op
        assert all(isinstance(sample, OpSample) for sample in samples)


def test_an_operator_of_another_namespace_is_called_by_its_qualified_name() -> None:
    library = plugrad.library.Library("toolbox", "DEF")
    library.define("halve(Tensor self) -> Tensor")
    library.impl("halve", lambda x: x / 2, "CompositeImplicitAutograd")
    assert resolve("toolbox::halve")(plugrad.ones(2)).tolist() == [0.5, 0.5]
    library._destroy()


def test_torch_is_not_imported() -> None:
    program = (
        "import sys, plugrad.testing.cases as c; c.all_cases(); "
        "sys.exit([name for name in sys.modules if name.partition('.')[0] == 'torch'] or None)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
