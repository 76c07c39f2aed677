"""What a backend can do for an operator: natively, derived, decomposed, or what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import (
    ActiveBackend,
    activate_backend,
    deactivate_backend,
    find_backend,
)
from plugrad.dispatch.backends.availability import (
    Availability,
    all_availability,
    availability,
    needs,
    needs_of,
)
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.primitives import core_primitives, is_primitive
from plugrad.dispatch.operator import Operator, all_operators, find_operator


class Some(Backend):
    def __init__(self, names: tuple[str, ...], mutable: bool) -> None:
        super().__init__("some", array_type=np.ndarray, mutable=mutable)
        self.names = names

    def kernels(self) -> dict[str, Callable[..., Any]]:
        return {name: lambda *arguments: arguments[0] for name in self.names}


@contextmanager
def having(*names: str, mutable: bool = True) -> Iterator[ActiveBackend]:
    """A backend with kernels of these names."""
    active = activate_backend(Some(names, mutable))
    try:
        yield active
    finally:
        deactivate_backend("some")


def op(name: str) -> Operator:
    found = find_operator(f"plugrad::{name}")
    assert found is not None
    return found


def lacking(found: dict[str, Availability]) -> list[str]:
    return [name for name, known in found.items() if name.startswith("plugrad::") and not known]


def test_a_kernel_is_native_under_its_full_name_or_the_base_name() -> None:
    with having("max.dim", "mm") as active:
        assert availability(op("max.dim"), active) == Availability("native")
        assert availability(op("mm"), active) == Availability("native")
        assert availability(op("exp"), active) == Availability("missing", ("exp",))


def test_a_decomposition_is_there_if_all_that_it_calls_is() -> None:
    with having("add", "mul", "exp") as active:
        found = availability(op("matmul"), active)
        assert not found
        assert "mm" in found.missing
    with having("mm", "view", "permute", "expand", "slice", "take", "where.self") as active:
        assert availability(op("matmul"), active) == Availability("decomposed")


def test_what_is_missing_is_named_down_to_the_primitives() -> None:
    with having("view", "permute") as active:
        found = availability(op("linear"), active)
        assert found.kind == "missing"
        for name in found.missing:
            assert is_primitive(op(name)), name


def test_an_inplace_operator_needs_the_functional_one_and_a_copy() -> None:
    with having("tril", "copy_") as active:
        assert availability(op("tril_"), active) == Availability("derived")
    with having("tril") as active:
        assert availability(op("tril_"), active) == Availability("missing", ("copy_",))


def test_immutable_arrays_are_replaced_and_never_written() -> None:
    with having("tril", "sigmoid_", mutable=False) as active:
        assert availability(op("copy_"), active)
        assert availability(op("tril_"), active) == Availability("derived")
        assert availability(op("sigmoid_"), active).kind != "native"


def test_an_inplace_view_writes_nothing() -> None:
    with having("permute") as active:
        assert availability(op("t_"), active) == Availability("derived")


def test_of_others_operators_a_decomposition_is_enough() -> None:
    from plugrad.dispatch import keys

    made = Operator("zz", "zz_lone", "", "zz::zz_lone(Tensor self) -> Tensor")
    with having() as active:
        assert availability(made, active) == Availability("missing", ("zz::zz_lone",))
        made.register(keys.COMPOSITE_IMPLICIT_AUTOGRAD, lambda keyset, x: x)
        assert needs_of(made) is None
        assert availability(made, active) == Availability("decomposed")


def test_the_cpu_has_everything() -> None:
    found = all_availability(find_backend("cpu"))
    assert [
        name for name, known in found.items() if name.startswith("plugrad::") and not known
    ] == []


def test_core_primitives_are_enough_for_the_core() -> None:
    with having(*(primitive.full_name for primitive in core_primitives())) as active:
        for each in all_operators():
            if each.level == "core" and each.namespace == "plugrad":
                assert availability(each, active), each.full_name


def test_primitives_are_enough_for_all() -> None:
    core = [each for each in all_operators() if each.namespace == "plugrad"]
    with having(*(each.full_name for each in core if is_primitive(each))) as active:
        found = all_availability(active)
    assert [
        name for name, known in found.items() if name.startswith("plugrad::") and not known
    ] == []


def test_no_operator_is_made_of_itself() -> None:
    table = needs()
    done: set[str] = set()

    def follow(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for need in table.get(name, ()):
                follow(need, (*above, name))
            done.add(name)

    for name in table:
        follow(name, ())
