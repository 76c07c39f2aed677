"""`plugrad.ops.<plugin>`, and kernels for a plugin's operators, load the plugin."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import plugrad
from plugrad.errors import PluginError
from plugrad.library import Library
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite

SOURCE = """
    from plugrad.library import Library

    lib = Library("late_ops", "DEF")
    lib.define("f(Tensor self) -> Tensor")
"""


@pytest.fixture(autouse=True)
def late(site: FakeSite, manager: PluginManager, project: object, cpu: object) -> Iterator[str]:
    """The plugin "late-ops" with a module that is not imported yet; returns the module's name."""
    yield site.add("plugrad-late-ops", "1.0", "late-ops", SOURCE)
    for name in manager.discovered():
        manager.unload(name)


def test_a_namespace_of_operators_is_loaded_when_it_is_asked_for(late: str) -> None:
    assert late not in sys.modules
    assert plugrad.ops.late_ops.f.overloads() == ["default"]
    assert late in sys.modules


def test_completion_shows_plugins_that_are_not_loaded(late: str, site: FakeSite) -> None:
    assert {"plugrad", "late_ops"} <= set(dir(plugrad.ops))
    assert late not in sys.modules


def test_completion_shows_no_plugin_that_is_known_to_bring_other_things(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("jax")
    site.add("plugrad-nn", "1.0", "nn", "")
    site.add("plugrad-distributions", "1.0", "distributions", "")
    manager.rescan()
    assert {"jax", "nn", "distributions"}.isdisjoint(dir(plugrad.ops))


def test_kernels_for_a_plugins_operators_load_it(late: str) -> None:
    with Library("late_ops", "IMPL", "CPU") as library:
        library.impl("f", lambda array: array + 1)
        assert late in sys.modules
        assert plugrad.ops.late_ops.f(plugrad.ones(1)).item() == 2.0


def test_the_function_impl_loads_it_too(late: str) -> None:
    library = Library("late_ops", "IMPL")
    plugrad.library.impl("late_ops::f", "cpu", lambda array: array + 2, lib=library)
    assert plugrad.ops.late_ops.f(plugrad.ones(1)).item() == 3.0
    library._destroy()


def test_a_namespace_whose_plugin_is_broken_says_so(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-broken", "2.0", "broken", "1 / 0")
    manager.rescan()
    message = r"operators 'broken' is provided by plugrad-broken 2\.0, .*ZeroDivisionError"
    with pytest.raises(PluginError, match=message):
        _ = plugrad.ops.broken


def test_a_namespace_that_nobody_has_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no operators are defined in the namespace 'nobody'"):
        _ = plugrad.ops.nobody
    assert not hasattr(plugrad.ops, "nobody")
