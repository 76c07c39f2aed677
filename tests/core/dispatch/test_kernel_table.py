"""Kernels come as mapping, module, class or object with marked methods, or a list of these."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from plugrad.errors import PluginError
from plugrad.plugins import kernel, kernel_table


class Marked:
    def __init__(self) -> None:
        self.factor = 3

    @kernel()
    def exp(self, a: Any) -> Any:
        return self.factor * a

    @kernel("max.dim", "min.dim")
    def extremum(self, a: Any) -> Any:
        return a

    @staticmethod
    @kernel("sin")
    def sine(a: Any) -> Any:
        return -a

    def unmarked(self) -> None: ...

    @property
    def expensive(self) -> Any:
        raise AssertionError("a property was run")


def module(source: str) -> ModuleType:
    made = ModuleType("kernels")
    exec(source, vars(made))
    return made


def test_a_mapping_is_copied() -> None:
    given = {"exp": abs}
    table = kernel_table(given)
    assert table == given
    assert table is not given


@pytest.mark.parametrize("source", [Marked, Marked()], ids=["class", "object"])
def test_marked_methods_are_bound(source: object) -> None:
    table = kernel_table(source)
    assert set(table) == {"exp", "max.dim", "min.dim", "sin"}
    assert table["exp"](2) == 6
    assert table["sin"](2) == -2


def test_a_subclass_overrides_a_marked_method() -> None:
    class Other(Marked):
        @kernel("exp")
        def better(self, a: Any) -> Any:
            return 0

    assert kernel_table(Other)["exp"](2) == 0


def test_an_override_without_mark_takes_the_kernel_away() -> None:
    class Other(Marked):
        def exp(self, a: Any) -> Any:
            return 0

    assert "exp" not in kernel_table(Other)


def test_a_module_without_marks_gives_its_public_functions() -> None:
    made = module("from math import sin\ndef exp(a): ...\ndef _own(a): ...\nPI = 3\n")
    assert set(kernel_table(made)) == {"exp"}


def test_all_of_a_module_may_name_imported_functions() -> None:
    assert set(kernel_table(module("from math import sin, cos\n__all__ = ['sin']\n"))) == {"sin"}


def test_marks_in_a_module_leave_the_rest_out() -> None:
    made = module(
        "from plugrad.plugins import kernel\n"
        "def helper(a): ...\n"
        "@kernel('max.dim')\n"
        "def max_dim(a, dim, keepdim): ...\n"
    )
    assert set(kernel_table(made)) == {"max.dim"}


def test_later_sources_of_a_list_win() -> None:
    table = kernel_table([Marked, {"exp": abs}])
    assert table["exp"] is abs
    assert "sin" in table


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "must come as a mapping.*got NoneType"),
        ("pkg.kernels", "must come as a mapping.*got str"),
        ({"exp": 3}, "the kernel for 'exp' must be callable, got int"),
        ({3: abs}, "a kernel's name must be a string, got 3"),
        (object(), "object has no method marked with @kernel"),
    ],
)
def test_anything_else_is_refused(source: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        kernel_table(source)


def test_the_decorator_without_parentheses_is_refused() -> None:
    with pytest.raises(TypeError, match=r"write @kernel\(\)"):
        kernel(abs)  # type: ignore[arg-type]


def test_names_are_checked_against_the_operators() -> None:
    from plugrad.dispatch.backends.kernel_table import check_names

    check_names(["exp", "other::anything"], ["exp"], "backend 'foo'")
    with pytest.raises(PluginError, match=r"backend 'foo' has a kernel for 'epx'.*mean 'exp'"):
        check_names(["epx"], ["exp"], "backend 'foo'")
