"""Kernels that plugins bring for backends, their own or others' (the hook `plugrad_kernels`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import plugrad
from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, find_backend
from plugrad.errors import OperatorNotFoundError, PluginConflictError, PluginWarning
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite

OPERATORS = """
    from plugrad.library import Library

    lib = Library("tides", "DEF")
    lib.define("rise(Tensor self) -> Tensor")
    lib.define("fall.by(Tensor self, Scalar amount) -> Tensor")
"""

KERNELS = """
    from plugrad.plugins import hookimpl

    @hookimpl
    def plugrad_kernels():
        return {{"cpu": {source}}}
"""


@pytest.fixture(autouse=True)
def tides(site: FakeSite, manager: PluginManager, project: object) -> Iterator[FakeSite]:
    """The plugin "tides" with two operators and no kernel; nothing is configured."""
    site.add("plugrad-tides", "1.0", "tides", OPERATORS)
    yield site
    for name in manager.discovered():
        manager.unload(name)


def rise() -> float:
    return float(plugrad.ops.tides.rise(plugrad.ones(1)).item())


def test_kernels_reach_an_active_backend_when_the_plugin_is_loaded(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = '{"tides::rise": lambda a: a + 1, "tides::fall.by": lambda a, amount: a - amount}'
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source=source))
    with pytest.raises(OperatorNotFoundError):
        rise()
    manager.load("moon")
    assert rise() == 2.0
    assert plugrad.ops.tides.fall(plugrad.ones(1), 3).item() == -2.0


def test_kernels_in_a_module_are_imported_when_the_backend_becomes_active(
    tides: FakeSite, manager: PluginManager
) -> None:
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source='"plugrad_moon.cpu"'))
    text = "from plugrad.plugins import kernel\n@kernel('tides::rise')\ndef rise(a): return a * 5\n"
    tides.module("plugrad_moon.cpu", text)
    manager.load("moon")
    assert "plugrad_moon.cpu" not in sys.modules
    backend = __import__("plugrad_cpu.backend", fromlist=["CpuBackend"]).CpuBackend()
    activate_backend(backend)
    assert "plugrad_moon.cpu" in sys.modules
    assert rise() == 5.0


def test_a_string_may_name_an_object_in_a_module(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = '["plugrad_moon.cpu:First.TABLE", {}]'
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source=source))
    tides.module("plugrad_moon.cpu", "class First: TABLE = {'tides::rise': lambda a: a * 7}\n")
    manager.load("moon")
    assert rise() == 7.0


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('"plugrad_moon.missing"', "ModuleNotFoundError: No module named 'plugrad_moon.missing'"),
        ('"plugrad_moon:nothing"', "AttributeError"),
        ('{"tides::rise": 3}', "must be callable"),
        ("3", "TypeError"),
    ],
)
def test_kernels_that_cannot_be_used_warn_and_hinder_nothing(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend, source: str, problem: str
) -> None:
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source=source))
    message = r"the kernels of plugrad-moon 1\.0 for backend 'cpu' cannot be used: .*"
    with pytest.warns(PluginWarning, match=message + problem):
        plugin = manager.load("moon")
    assert plugin.status == "loaded"
    assert set(plugin.kernel_errors) == {"cpu"}
    assert plugrad.ones(2).exp().sum().item() > 5


def test_a_kernel_for_no_operator_is_left_out_and_the_others_are_used(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = '{"sinn": abs, "tides::rise": lambda a: a + 4}'
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source=source))
    message = r"plugrad-moon 1\.0 has, for backend 'cpu', a kernel for 'sinn', but .* mean 'sin'\?"
    with pytest.warns(PluginWarning, match=message):
        plugin = manager.load("moon")
    assert rise() == 5.0
    assert plugin.kernel_errors == {}
    assert len(plugin.unknown_kernels["cpu"]) == 1


def two_rivals(tides: FakeSite) -> None:
    for name, factor in (("moon", 2), ("sun", 3)):
        source = f'{{"tides::rise": lambda a: a * {factor}}}'
        tides.add(f"plugrad-{name}", "1.0", name, KERNELS.format(source=source))


def test_two_kernels_for_one_operator_and_backend_conflict_when_it_is_called(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    two_rivals(tides)
    manager.load("moon")
    assert rise() == 2.0
    manager.load("sun")
    assert plugrad.ones(1).exp().item() > 2  # nothing else is touched
    with pytest.raises(PluginConflictError) as caught:
        rise()
    expected = (
        "plugrad-moon 1.0 and plugrad-sun 1.0 both provide a kernel for 'tides::rise' on backend "
        "'cpu': uninstall one of them, or in plugrad.toml say disable = ['plugrad-sun'] or "
        "prefer = ['plugrad-moon']"
    )
    assert str(caught.value) == expected
    assert expected in [conflict.text for conflict in manager.conflicts()]
    manager.unload("sun")
    assert rise() == 2.0


def test_a_conflict_of_kernels_is_settled_by_the_configuration(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    two_rivals(tides)
    manager.load_all()
    with plugrad.config.set(prefer=["sun"]):
        assert rise() == 3.0
    with plugrad.config.set(disable=["sun"]):
        assert rise() == 2.0
    with pytest.raises(PluginConflictError):
        rise()


def test_a_backends_own_kernel_stays_unless_the_plugin_is_preferred(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = '{"exp": lambda a: a * 0 + 42, "max.dim": None.__class__}'
    tides.add("plugrad-moon", "1.0", "moon", KERNELS.format(source=source))
    manager.load("moon")
    assert plugrad.zeros(1).exp().item() == 1.0
    (conflict,) = manager.conflicts()
    assert conflict.settled
    assert conflict.text == (
        "plugrad-moon 1.0 provides kernels for 'exp', 'max.dim' on backend 'cpu', which has its "
        "own: those are used, unless plugrad.toml says prefer = ['plugrad-moon']"
    )
    with plugrad.config.set(prefer=["moon"]):
        assert plugrad.zeros(1).exp().item() == 42.0
        (conflict,) = manager.conflicts()
        assert conflict.settled
        assert conflict.text == (
            "plugrad-moon 1.0's kernels for 'exp', 'max.dim' on backend 'cpu' are used, not those "
            "of backend 'cpu': preferred by plugrad.config.set(prefer=['moon'])"
        )
    assert plugrad.zeros(1).exp().item() == 1.0


def test_a_plugin_that_only_adds_kernels_is_loaded_with_the_operators(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = KERNELS.format(source='{"tides::rise": lambda a: a * 11}')
    module = tides.add("plugrad-moon", "1.0", "", source, adds_to="tides")
    assert "plugrad-moon" in manager.discovered()
    assert module not in sys.modules
    assert rise() == 11.0
    assert module in sys.modules


def test_a_plugin_that_adds_to_the_core_is_loaded_with_the_first_backend(
    tides: FakeSite, manager: PluginManager
) -> None:
    source = KERNELS.format(source='{"exp": lambda a: a * 0 + 9}')
    tides.add("plugrad-fast", "1.0", "", source, adds_to="plugrad")
    with plugrad.config.set(prefer=["plugrad-fast"]):
        backend = __import__("plugrad_cpu.backend", fromlist=["CpuBackend"]).CpuBackend()
        activate_backend(backend)
        assert plugrad.zeros(1).exp().item() == 9.0


def test_kernels_go_when_the_plugin_is_unloaded(
    tides: FakeSite, manager: PluginManager, cpu: ActiveBackend
) -> None:
    source = KERNELS.format(source='{"tides::rise": lambda a: a * 11}')
    tides.add("plugrad-moon", "1.0", "moon", source)
    manager.load("moon")
    assert rise() == 11.0
    manager.unload("moon")
    with pytest.raises(OperatorNotFoundError):
        rise()
    assert find_backend("cpu").added_kernels == {}
