"""`load_operators`: the functions of a plugin's operators, for the plugin's own public module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import plugrad
from plugrad.codegen import unload
from plugrad.plugins import PluginError, get_manager, hookimpl, load_operators

FIRST = """
- func: twice(Tensor self) -> Tensor
  composite: twice
  doc: Two times it.
"""
SECOND = """
- func: thrice(Tensor self) -> Tensor
  composite: thrice
  doc: Three times it.
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[str]:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, text in zip(files, (FIRST, SECOND), strict=True):
        file.write_text(text)
    module = ModuleType("operators_plugin")
    vars(module).update(
        plugrad_ops=hookimpl(specname="plugrad_ops")(
            lambda: [files[0], (files[1], {"thrice": lambda x: x + x + x})]
        ),
        twice=lambda x: x + x,
    )
    found = get_manager().register(module, "multiples")
    yield "multiples"
    get_manager().unregister("multiples")
    for family in found.libraries:
        if isinstance(family, ModuleType):
            unload(family)


def test_functions_of_all_files_are_gathered(plugin: str) -> None:
    operators = load_operators(plugin)
    assert operators.__all__ == ["twice", "thrice"]
    assert operators.thrice(plugrad.ones(1)).item() == 3.0
    assert operators.twice.__doc__.startswith("Two times it.")


def test_a_plugin_without_files_is_refused() -> None:
    get_manager().register(ModuleType("nothing"), "without_files")
    try:
        with pytest.raises(PluginError, match=r"plugrad_ops\(\) of nothing names no YAML file"):
            load_operators("without_files")
    finally:
        get_manager().unregister("without_files")


def test_a_plugin_that_is_not_there_is_refused() -> None:
    with pytest.raises(PluginError, match="no plugin named 'never_written' is installed"):
        load_operators("never_written")
