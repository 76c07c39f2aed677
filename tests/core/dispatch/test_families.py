"""Families of operators that are loaded when one of their operators is asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugrad
from plugrad._generated import on_demand
from plugrad.dispatch import families
from plugrad.dispatch.operator import declared_operators, find_operator, retract

MODULE = "family_of_tests"
SOURCE = """
import builtins
from plugrad.dispatch.operator import Operator, declare

declare(Operator("waiting_ops", "first", "", "first(Tensor self) -> Tensor"))
if getattr(builtins, "fail_family_of_tests", False):
    raise KeyboardInterrupt
declare(Operator("waiting_ops", "second", "", "second(Tensor self) -> Tensor"))
"""


@pytest.fixture(autouse=True)
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    families.announce({"waiting_ops::first": MODULE, "waiting_ops::second": MODULE})
    yield
    families.load_families()
    sys.modules.pop(MODULE, None)
    for op in [op for op in declared_operators() if op.namespace == "waiting_ops"]:
        retract(op)


def test_asking_for_an_operator_loads_its_family() -> None:
    assert families.is_waiting("waiting_ops::first")
    op = find_operator("waiting_ops::second")
    assert op is not None
    assert MODULE in sys.modules
    assert not families.is_waiting("waiting_ops::first")
    assert "waiting_ops::second" in {op.qualified_name for op in declared_operators()}


def test_what_nobody_announced_loads_nothing() -> None:
    assert find_operator("waiting_ops::third") is None
    assert MODULE not in sys.modules


def test_an_interrupt_leaves_nothing_of_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    monkeypatch.setattr(builtins, "fail_family_of_tests", True, raising=False)
    with pytest.raises(KeyboardInterrupt):
        find_operator("waiting_ops::second")
    assert "waiting_ops::first" not in {op.qualified_name for op in declared_operators()}
    monkeypatch.delattr(builtins, "fail_family_of_tests")
    assert find_operator("waiting_ops::second") is not None


def test_importing_plugrad_loads_no_family_on_demand() -> None:
    code = (
        "import sys, plugrad; from plugrad._generated import on_demand as names; "
        "modules = {'plugrad._generated.' + name for name in names.FUNCTIONS.values()}; "
        "print(sorted(modules & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_names_are_there_before_the_family() -> None:
    assert {name for name in on_demand.METHODS if not name.startswith("_")} <= set(
        dir(plugrad.Tensor)
    )
    public = {name for name in on_demand.FUNCTIONS if not name.startswith("_")}
    assert {name for name in public if not name.endswith(("_backward", "_forward"))} <= set(
        dir(plugrad)
    )
