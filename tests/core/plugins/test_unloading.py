"""Plugins go and come back within one process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from textwrap import dedent
from types import ModuleType

import pytest

import plugrad
from plugrad.dispatch.backends.active import active_backends, find_backend
from plugrad.dispatch.operator import find_operator
from plugrad.errors import BackendNotFoundError, OperatorNotFoundError, PluginError
from plugrad.plugins import Backend, get_manager, hookimpl
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite

WHOLE = """
    import numpy as np
    from plugrad.library import Library, custom_op
    from plugrad.plugins import Backend, hookimpl, kernel
    from plugrad_comet.layers import TAIL
    import plugrad

    FACTOR = {factor}

    class CometBackend(Backend):
        def __init__(self):
            super().__init__("comet", array_type=np.ndarray)

        @kernel()
        def mul(self, a, b):
            return a * b * FACTOR

    lib = Library("comet", "DEF")
    lib.define("pass_by(Tensor self) -> Tensor")
    lib.impl("pass_by", lambda x: x * FACTOR, "CompositeImplicitAutograd")

    @custom_op("comet::orbit", mutates_args=())
    def orbit(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * FACTOR

    @hookimpl
    def plugrad_backends():
        return [CometBackend]

    @hookimpl
    def plugrad_namespaces():
        return {{"comet": "plugrad_comet.layers", "halley": "plugrad_comet.layers:TAIL"}}

    @hookimpl
    def plugrad_ops():
        return [__file__.replace("plugin.py", "ops.yaml")]

    @hookimpl
    def plugrad_kernels():
        return {{"cpu": {{"comet::third": lambda a: a * FACTOR}}}}
"""

YAML = """
- func: third(Tensor self) -> Tensor
  derivatives:
    self: grad * 3
  doc: Computed by a kernel.
"""


@pytest.fixture(autouse=True)
def nothing_configured(project: object) -> None:
    """No test depends on where it runs."""


@pytest.fixture
def comet(site: FakeSite, manager: PluginManager, cpu: object) -> Iterator[FakeSite]:
    """A plugin with a backend, operators of three kinds, kernels and namespaces."""
    site.add("plugrad-comet", "1.0", "comet", WHOLE.format(factor=2))
    (site.folder / "plugrad_comet" / "ops.yaml").write_text(YAML)
    site.module("plugrad_comet.layers", "TAIL = []")
    yield site
    if "comet" in manager.discovered():
        manager.unload("comet")


def changed(comet: FakeSite, factor: int) -> None:
    """Another version of the source; longer, since Python compares size and second of a file."""
    text = dedent(WHOLE.format(factor=factor)) + "# changed\n" * factor
    comet.module("plugrad_comet.plugin", text)


OPERATORS = ("comet::pass_by", "comet::orbit", "comet::third")


def test_unloading_takes_back_all_that_a_plugin_brought(
    comet: FakeSite, manager: PluginManager
) -> None:
    plugin = manager.load("comet")
    assert plugin.problem == ""
    assert sorted(manager.operators(plugin)) == sorted(OPERATORS)
    find_backend("comet")
    assert plugrad.comet.TAIL is plugrad.halley
    importlib.import_module("plugrad.comet")
    manager.unload("comet")
    assert plugin.status == "unloaded"
    assert [name for name in OPERATORS if find_operator(name) is not None] == []
    assert "comet" not in [active.name for active in active_backends()]
    assert find_backend("cpu").added_kernels == {}
    assert [name for name in sys.modules if "plugrad_comet" in name] == []
    assert "plugrad.comet" not in sys.modules
    assert "plugrad_comet" not in str(vars(plugrad).get("comet"))
    for name in ("comet", "halley"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(plugrad, name)


def test_an_unloaded_plugin_stays_so_until_it_is_asked_for_by_name(
    comet: FakeSite, manager: PluginManager
) -> None:
    find_backend("comet")
    manager.unload("comet")
    hint = r"(?s)Unloaded: comet \(plugrad-comet 1\.0\).*\.load\('comet'\) loads it again"
    with pytest.raises(BackendNotFoundError, match=hint):
        plugrad.ones(1, device="comet")
    manager.load_all()
    assert find_operator("comet::pass_by") is None
    manager.load("comet")
    assert find_backend("comet").name == "comet"
    assert plugrad.ops.comet.pass_by(plugrad.ones(1)).item() == 2.0


def test_reloading_runs_the_source_anew(comet: FakeSite, manager: PluginManager) -> None:
    manager.load("comet")
    before = find_backend("comet").backend
    for factor in (3, 4):
        changed(comet, factor)
        assert manager.reload("comet").status == "loaded"
        one = plugrad.ones(1)
        assert plugrad.ops.comet.pass_by(one).item() == factor
        assert plugrad.ops.comet.orbit(one).item() == factor
        assert plugrad.ops.comet.third(one).item() == factor
        assert (plugrad.ones(1, device="comet") * 1).item() == factor
    assert find_backend("comet").backend is not before


def test_reloading_what_is_broken_now_raises_and_mending_it_helps(
    comet: FakeSite, manager: PluginManager
) -> None:
    manager.load("comet")
    comet.module("plugrad_comet.plugin", "1 / 0")
    with pytest.raises(PluginError, match=r"plugin 'comet' \(plugrad-comet 1\.0\): ZeroDivision"):
        manager.reload("comet")
    assert find_operator("comet::pass_by") is None
    changed(comet, 5)
    manager.reload("comet")
    assert plugrad.ops.comet.pass_by(plugrad.ones(1)).item() == 5.0


def test_live_tensors_of_an_unloaded_backend_say_what_happened(
    comet: FakeSite, manager: PluginManager
) -> None:
    x = plugrad.ones(2, device="comet")
    manager.unload("comet")
    assert x.shape == (2,)
    assert str(x.device) == "comet"
    assert repr(x) == "tensor(..., device='comet', size=(2,))"
    with pytest.raises(OperatorNotFoundError, match="'Comet' backend: the backend is not active"):
        x * x
    manager.load("comet")
    assert (x * x).tolist() == [2.0, 2.0]  # its arrays are NumPy's, before and after


def test_a_graph_outlives_the_operators_that_it_was_recorded_with(
    comet: FakeSite, manager: PluginManager
) -> None:
    manager.load("comet")
    x = plugrad.ones(2, requires_grad=True)
    y = plugrad.ops.comet.third(x).sum()
    manager.unload("comet")
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_operators_of_a_module_that_was_imported_before_its_plugin_go_with_it(
    comet: FakeSite, manager: PluginManager
) -> None:
    importlib.import_module("plugrad_comet.plugin")
    assert find_operator("comet::pass_by") is not None
    manager.load("comet")
    manager.unload("comet")
    assert find_operator("comet::pass_by") is None
    manager.load("comet")
    assert find_operator("comet::pass_by") is not None


def test_another_plugins_operators_stay_although_they_were_defined_meanwhile(
    site: FakeSite, manager: PluginManager
) -> None:
    source = """
        from plugrad.library import Library
        lib = Library("base_ops", "DEF")
        lib.define("f(Tensor self) -> Tensor")
    """
    site.add("plugrad-base", "1.0", "base", source)
    site.add("plugrad-user", "1.0", "user", "import plugrad_base.plugin")
    manager.load("user")
    manager.unload("user")
    assert find_operator("base_ops::f") is not None
    manager.unload("base")
    assert find_operator("base_ops::f") is None


def test_unloading_one_of_two_plugins_of_a_package_leaves_the_others_modules(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-pair", "1.0", "left", "")
    site.module("plugrad_pair.right", "")
    entries = site.folder / "plugrad_pair-1.0.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text() + "right = plugrad_pair.right\n")
    manager.load_all()
    manager.unload("left")
    assert "plugrad_pair.plugin" not in sys.modules
    assert "plugrad_pair.right" in sys.modules
    assert manager.discovered()["right"].status == "loaded"


def test_a_plugin_registered_by_hand_is_reloaded_from_its_file(
    site: FakeSite, manager: PluginManager
) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        @hookimpl
        def plugrad_backends():
            return [Backend("handmade", array_type={array_type})]
    """
    site.module("handmade", source.format(array_type="list"))
    manager.register(importlib.import_module("handmade"), "handmade")
    assert manager.backend("handmade").array_type is list
    site.module("handmade", source.format(array_type="bytearray"))
    manager.reload("handmade")
    assert manager.backend("handmade").array_type is bytearray
    manager.unregister("handmade")
    assert "handmade" not in manager.discovered()


def test_a_module_without_a_file_is_asked_again(manager: PluginManager) -> None:
    module = ModuleType("typed_in")
    backends = [Backend("typed", array_type=list)]
    vars(module)["plugrad_backends"] = hookimpl(lambda: list(backends))
    manager.register(module, "typed_in")
    backends.append(Backend("typed_too", array_type=list))
    manager.reload("typed_in")
    assert sorted(manager.backends()) == ["typed", "typed_too"]


def test_unloading_an_unknown_plugin_names_the_installed_ones(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo")
    with pytest.raises(PluginError, match="no plugin named 'bar' is installed; installed: foo"):
        manager.unload("bar")


def test_a_distribution_that_was_installed_meanwhile_is_found_by_a_rescan(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo")
    loaded = manager.load("foo")
    site.backend("bar")
    assert list(manager.discovered()) == ["foo"]
    manager.rescan()
    assert list(manager.discovered()) == ["bar", "foo"]
    assert manager.discovered()["foo"] is loaded


def test_a_distribution_that_was_uninstalled_is_unloaded_by_a_rescan(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo")
    site.backend("bar")
    manager.load("foo")
    manager.load("bar")
    site.uninstall("foo")
    manager.rescan()
    assert list(manager.discovered()) == ["bar"]
    assert list(manager.backends()) == ["bar"]
    with pytest.raises(PluginError, match="no plugin named 'foo' is installed"):
        manager.load("foo")


def test_the_process_has_one_manager() -> None:
    assert get_manager() is get_manager()
