"""Namespaces that plugins add to plugrad."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from collections.abc import Iterator

import pytest

import plugrad
from plugrad.errors import PluginError
from plugrad.plugins import load_namespace
from plugrad.plugins.loading.manager import PluginManager
from plugrad.plugins.loading.published import OURS, PUBLISHED
from tests.core.plugins.conftest import FakeSite

PLUGIN = """
    from plugrad.plugins import hookimpl

    @hookimpl
    def plugrad_namespaces():
        return {"shapes": "plugrad_shapes.shapes", "area": "plugrad_shapes.shapes.round:area"}
"""


@pytest.fixture
def shapes(site: FakeSite, manager: PluginManager) -> Iterator[FakeSite]:
    """A plugin that claims `plugrad.shapes`, a package with a submodule."""
    site.add("plugrad-shapes", "1.0", "shapes", PLUGIN)
    site.module("plugrad_shapes.shapes.round", "name = __name__\narea = 3.14")
    yield site
    plugrad = sys.modules["plugrad"]
    for name in [name for name in sys.modules if name.startswith("plugrad.shapes")]:
        del sys.modules[name]
    vars(plugrad).pop("shapes", None)


def test_a_namespace_is_the_plugins_own_module(shapes: FakeSite) -> None:
    module = load_namespace("shapes")
    assert module is importlib.import_module("plugrad_shapes.shapes")
    assert module.__name__ == "plugrad_shapes.shapes"


def test_a_namespace_can_be_imported(shapes: FakeSite) -> None:
    module = importlib.import_module("plugrad.shapes")
    assert module is importlib.import_module("plugrad_shapes.shapes")
    assert module.__spec__ is not None
    assert module.__spec__.name == "plugrad_shapes.shapes"


def test_a_submodule_of_a_namespace_runs_once(shapes: FakeSite) -> None:
    alias = importlib.import_module("plugrad.shapes.round")
    assert alias is importlib.import_module("plugrad_shapes.shapes.round")
    assert alias.name == "plugrad_shapes.shapes.round"


def test_python_m_runs_a_namespace(shapes: FakeSite, capsys: pytest.CaptureFixture[str]) -> None:
    """What `python -m` does: first the package's `__main__`, and a module without one itself."""
    shapes.module("plugrad_shapes.shapes.__main__", "print(__name__, __package__, __spec__.name)")
    shapes.module("plugrad_shapes.shapes.oval", "print(__name__, __package__, __spec__.name)")
    runpy.run_module("plugrad.shapes", run_name="__main__")
    runpy.run_module("plugrad.shapes.oval", run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "__main__ plugrad.shapes plugrad.shapes.__main__",
        "__main__ plugrad.shapes plugrad.shapes.oval",
    ]


def test_an_object_in_a_module_can_be_claimed(shapes: FakeSite) -> None:
    assert load_namespace("area") == 3.14


def test_a_claimed_object_is_no_module_to_import(shapes: FakeSite) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'plugrad.area'"):
        importlib.import_module("plugrad.area")


def test_a_missing_submodule_of_a_namespace_is_a_plain_import_error(shapes: FakeSite) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'plugrad.shapes.square'"):
        importlib.import_module("plugrad.shapes.square")


def test_unclaimed_name_is_an_attribute_error(manager: PluginManager) -> None:
    with pytest.raises(AttributeError, match="module 'plugrad' has no attribute 'nonsense'"):
        load_namespace("nonsense")


def test_unclaimed_module_is_a_plain_import_error(manager: PluginManager) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'plugrad.nonsense'"):
        importlib.import_module("plugrad.nonsense")


def test_private_names_load_no_plugin(site: FakeSite, manager: PluginManager) -> None:
    module = site.add("plugrad-shapes", "1.0", "shapes", PLUGIN)
    with pytest.raises(AttributeError):
        load_namespace("__wrapped__")
    assert module not in sys.modules


@pytest.mark.parametrize("name", ["nn", "optim", "save"])
def test_known_namespace_that_is_not_installed_says_what_to_install(
    manager: PluginManager, name: str
) -> None:
    with pytest.raises(ModuleNotFoundError, match="not installed: pip install plugrad-nn"):
        load_namespace(name)


def test_namespace_of_a_failing_plugin_raises_its_error(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-nn", "0.9", "nn", "import no_such_library")
    with pytest.raises(PluginError, match=r"plugrad.optim is provided by plugrad-nn 0.9"):
        load_namespace("optim")


@pytest.mark.parametrize(("written", "meant"), [("rleu", "relu"), ("optm", "optim")])
def test_a_misspelt_name_is_told_what_was_meant(written: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{written}'. Did you mean: '{meant}'"):
        getattr(plugrad, written)


@pytest.mark.parametrize(("written", "meant"), [("gpu", "cuda"), ("CPU", "cpu"), ("cup", "cpu")])
def test_a_device_by_another_name_is_told_what_was_meant(written: str, meant: str) -> None:
    with pytest.raises(RuntimeError, match=f"named '{written}'.*Did you mean '{meant}'"):
        plugrad.ones(2, device=written)


def test_a_misspelt_name_imports_none_of_our_plugins() -> None:
    program = """
import sys
import plugrad
try:
    plugrad.rleu
except AttributeError as error:
    print(error)
print([name for name in ("jax", "plugrad_jax", "plugrad_cuda", "plugrad_special", "plugrad_nn")
       if name in sys.modules])
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "module 'plugrad' has no attribute 'rleu'. Did you mean: 'relu'?",
        "[]",
    ]


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_plugins_claim_what_is_known_of_them(name: str) -> None:
    plugin = importlib.import_module(f"plugrad_{name}.plugin")
    hook = getattr(plugin, "plugrad_namespaces", dict)
    assert set(hook()) <= {name, *(claimed for claimed in PUBLISHED if PUBLISHED[claimed] == name)}
