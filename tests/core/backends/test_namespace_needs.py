"""A namespace that lacks functions: kernels that need them are missing, all others work."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.errors import OperatorNotFoundError
from plugrad.plugins import Backend
from plugrad.plugins.array_namespace.backend import FAMILIES
from plugrad.plugins.array_namespace.family import Family
from plugrad.plugins.array_namespace.namespace import REQUIRED, Namespace
from tests.core.backends.conftest import activated

# What a library has that does little: the functions of the core primitives.
FEW = (
    *REQUIRED,
    *("add", "multiply", "divide", "logical_or", "logical_and", "pow", "equal", "less", "where"),
    *("exp", "log", "sqrt", "sin", "cos", "atan", "floor", "abs", "remainder", "any"),
    *("sum", "max", "matmul", "take", "min", "permute_dims", "reshape", "broadcast_to"),
)


class Only:
    """NumPy with some of its functions."""

    def __init__(self, name: str, functions: tuple[str, ...]) -> None:
        self.__name__ = name
        self._functions = functions

    def __getattr__(self, attribute: str) -> Any:
        kept = attribute in self._functions or attribute.startswith("__")
        if not kept and not isinstance(getattr(np, attribute, None), type):
            raise AttributeError(attribute)
        return getattr(np, attribute)


def _called(cls: type, method: str, seen: set[str]) -> Iterator[str]:
    """The functions of the namespace that a method calls, by way of the class's others as well."""
    if method in seen or not hasattr(cls, method):
        return
    seen.add(method)
    source = textwrap.dedent(inspect.getsource(getattr(cls, method)))
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        if owner in ("self.xp", "xp"):
            yield node.attr
        elif owner == "self":
            yield from _called(cls, node.attr, seen)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_kernel_says_which_functions_it_needs(family: type[Family]) -> None:
    marked = [name for name, method in vars(family).items() if hasattr(method, "__needs__")]
    marked += [
        name for name, method in vars(family).items() if hasattr(method, "__plugrad_kernel__")
    ]
    assert marked or family.table is not Family.table
    for name in marked:
        method = getattr(family, name)
        said = {need.partition(".")[0] for need in getattr(method, "__needs__", ())}
        called = set(_called(family, name, set())) - {"linalg"}
        assert called <= said | set(REQUIRED), name


@pytest.mark.parametrize("function", ["ceil", "less", "isnan", "logical_xor", "matmul"])
def test_tables_leave_out_what_is_missing(function: str) -> None:
    functions = tuple(name for name in dir(np) if name != function)
    whole = Backend.from_array_namespace(np, "whole").kernels()
    part = Backend.from_array_namespace(Only("part", functions)).kernels()
    assert part.keys() < whole.keys()


def test_bools_are_added_as_numbers_where_there_is_no_logic() -> None:
    few = tuple(name for name in FEW if not name.startswith("logical"))
    with activated(Backend.from_array_namespace(Only("plain", few))) as name:
        x = plugrad.tensor([True, True, False, False], device=name)
        y = plugrad.tensor([True, False, True, False], device=name)
        assert (x + y).tolist() == [True, True, True, False]
        assert (x * y).tolist() == [True, False, False, False]


def test_two_dozen_functions_are_enough() -> None:
    with activated(Backend.from_array_namespace(Only("few", FEW))) as name:
        x = plugrad.tensor([[3.0, -1.0], [2.0, 0.5]], device=name, requires_grad=True)
        y = plugrad.nn.functional.softmax(x, 1) @ x.t().tanh()
        y.sum().backward()
        z = plugrad.zeros(3, 3, device=name)
        z[1] = 2
        z.t()[0] += 1
        z[z > 1.5] = 7
        ordered = x.detach().sort(1).values
        assert x.grad is not None
        assert ordered.tolist() == [[-1.0, 3.0], [0.5, 2.0]]
        assert z.tolist() == [[1.0, 0.0, 0.0], [7.0, 7.0, 7.0], [1.0, 0.0, 0.0]]


def test_what_lacks_a_primitive_names_it() -> None:
    few = tuple(name for name in FEW if name != "log")
    with activated(Backend.from_array_namespace(Only("fewer", few))) as name:
        x = plugrad.ones(2, device=name)
        with pytest.raises(OperatorNotFoundError, match=r"log1p' .* made of 'plugrad::log'"):
            x.log1p()
        with plugrad.config.set(fallback="cpu"), pytest.warns(UserWarning, match="log"):
            assert x.log().tolist() == [0.0, 0.0]


def test_what_no_kernel_can_do_without_is_named() -> None:
    with pytest.raises(TypeError, match="'tiny' lacks astype, full, which every"):
        Backend.from_array_namespace(Only("tiny", ("asarray", "zeros")))


def test_dtypes_that_cannot_be_done_without_are_named() -> None:
    with pytest.raises(TypeError, match=r"bool and int64 must be among them"):
        Namespace(np, dtypes=["float32"])
    with pytest.raises(TypeError, match=r"'numpy' has the dtypes bool, .*, not float31$"):
        Namespace(np, dtypes=["bool", "int64", "float31"])


def test_bools_are_counted_without_uint8() -> None:
    backend = Backend.from_array_namespace(np, "wide", dtypes=["bool", "int64", "float32"])
    with activated(backend) as name:
        x = plugrad.tensor([True, False], device=name)
        assert (x < True).tolist() == [False, True]
        assert x.sort().values.tolist() == [False, True]
        assert plugrad.tensor([3, 0], device=name).any().dtype is plugrad.bool
