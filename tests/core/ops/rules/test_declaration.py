"""Kernels that do not depend on a backend are registered from the tables of generated modules."""

from __future__ import annotations

import pytest

from plugrad.dispatch.adapters import BelowAutograd, CompositeKernel
from plugrad.dispatch.keys import (
    AUTOGRAD_ALIAS,
    COMPOSITE_EXPLICIT_AUTOGRAD,
    COMPOSITE_IMPLICIT_AUTOGRAD,
)
from plugrad.dispatch.operator import Operator, declared_operators
from plugrad.ops.declaration import KINDS, name_nodes, register_kernels, words


def operator(name: str) -> Operator:
    return Operator("declared", name, "", f"{name}(Tensor self) -> Tensor")


def double(x: int) -> int:
    return 2 * x


class Module:
    triple = staticmethod(lambda x: 3 * x)


def test_words_are_names_with_values() -> None:
    assert list(words("  a=b.c\n  d= e=1,2,x ")) == [("a", "b.c"), ("d", ""), ("e", "1,2,x")]


def test_functions_are_found_in_the_module_and_in_what_it_imports() -> None:
    names = {"OP_f": operator("f"), "OP_g": operator("g"), "double": double, "composite": Module}
    register_kernels(names, {"composite": "f=double", "explicit": "g=composite.triple"})
    made = names["OP_f"].kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD)
    assert isinstance(made, CompositeKernel)
    assert made(0, 21) == 42
    below = names["OP_g"].kernel_for(COMPOSITE_EXPLICIT_AUTOGRAD)
    assert isinstance(below, BelowAutograd)
    assert below(0, 7) == 21


def test_an_operator_knows_its_autograd_kernel() -> None:
    names = {"OP_f": operator("f"), "autograd_f": double}
    register_kernels(names, {"autograd": "f=f"})
    assert names["OP_f"].autograd_kernel is double
    assert names["OP_f"].kernel_for(AUTOGRAD_ALIAS) is double


def test_nodes_get_the_names_that_users_see() -> None:
    node = type("Node_f", (), {})
    name_nodes({"Node_f": node}, "f=FBackward0")
    assert node.__name__ == node.__qualname__ == "FBackward0"


@pytest.mark.parametrize("table", ["g=double", "f=other"])
def test_what_is_not_there_is_an_error(table: str) -> None:
    with pytest.raises(KeyError):
        register_kernels({"OP_f": operator("f"), "double": double}, {"composite": table})


def test_generated_modules_use_every_kind() -> None:
    found = {
        type(kernel).__name__
        for op in declared_operators()
        for key in op.registered_keys()
        for kernel in [op.kernel_for(key)]
    }
    assert found >= {
        *("CompositeKernel", "CompositeInplace", "BelowAutograd", "ViewKernel"),
        *("InplaceViewKernel", "MutationKernel", "BackendSelectKernel"),
    }
    assert len(KINDS) == 9
    recorded = [op for op in declared_operators() if op.autograd_kernel is not None]
    assert len(recorded) > 300
    assert all(op.kernel_for(AUTOGRAD_ALIAS) is op.autograd_kernel for op in recorded)
