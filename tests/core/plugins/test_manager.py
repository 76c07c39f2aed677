"""Finding, loading and isolating plugins."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins import Backend, hookimpl
from plugrad.plugins.loading import messages
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite


def test_discovery_imports_nothing(site: FakeSite, manager: PluginManager) -> None:
    module = site.backend("foo", "1.2")
    plugin = manager.discovered()["foo"]
    assert (plugin.distribution, plugin.version, plugin.status) == (
        "plugrad-foo",
        "1.2",
        "not loaded",
    )
    assert module not in sys.modules


def test_metadata_is_scanned_once(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.backend("foo")
    manager.discovered()

    def scan_again(*, group: str) -> list[importlib.metadata.EntryPoint]:
        raise AssertionError("scanned a second time")

    monkeypatch.setattr(importlib.metadata, "entry_points", scan_again)
    assert list(manager.discovered()) == ["foo"]


def test_selecting_a_backend_loads_only_the_plugin_of_that_name(
    site: FakeSite, manager: PluginManager
) -> None:
    other = site.backend("bar")
    site.backend("foo")
    assert manager.backend("foo").name == "foo"
    assert other not in sys.modules


def test_backend_of_another_name_than_its_plugin_is_found(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("bar")
    source = """
        from plugrad.plugins import Backend, hookimpl

        @hookimpl
        def plugrad_backends():
            return [Backend("foo", array_type=list)]
    """
    site.add("plugrad-things", "3.0", "things", source)
    assert manager.backend("foo").name == "foo"


def test_a_backend_is_made_once(site: FakeSite, manager: PluginManager) -> None:
    site.backend("foo")
    assert manager.backend("foo") is manager.backend("foo")


def test_threads_that_ask_at_once_get_one_backend(site: FakeSite, manager: PluginManager) -> None:
    site.backend("foo")
    barrier = threading.Barrier(8)

    def ask(_: int) -> Backend:
        barrier.wait()
        return manager.backend("foo")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


def test_a_plugin_that_fails_to_import_keeps_its_error(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-foo", "1.2", "foo", "import no_such_array_library")
    plugin = manager.load("foo")
    assert plugin.status == "failed"
    assert plugin.problem == "ModuleNotFoundError: No module named 'no_such_array_library'"
    assert plugin.origin == "plugrad-foo 1.2"


def test_a_failing_plugin_does_not_disturb_the_others(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-broken", "1.0", "broken", "1 / 0")
    site.backend("foo")
    assert [plugin.status for plugin in manager.load_all()].count("failed") == 1
    assert list(manager.backends()) == ["foo"]


def test_selecting_what_a_failing_plugin_provides_raises_its_error(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-foo", "1.2", "foo", "import no_such_array_library")
    message = r"(?s)backend 'foo' is provided by plugrad-foo 1.2, .*no_such_array_library.*doctor"
    with pytest.raises(PluginError, match=message) as caught:
        manager.backend("foo")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_failing_plugin_is_imported_once(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-foo", "1.2", "foo", "import no_such_array_library")
    assert manager.load("foo").error is manager.load("foo").error


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            'return [Backend("foo", array_type=list, api_version=99)]',
            "backend 'foo' was written for version 99.0 of the plugin contract, and this plugrad "
            "has version 1.0: that is newer; upgrade plugrad",
        ),
        ("return [3]", "instances or subclasses of plugrad.plugins.Backend, got int"),
        ("return 3", "plugrad_backends() must return a list, got int"),
        ('raise OSError("no driver")', "OSError: no driver"),
    ],
)
def test_unusable_backends_are_recorded(
    site: FakeSite, manager: PluginManager, source: str, problem: str
) -> None:
    head = "from plugrad.plugins import Backend, hookimpl\n@hookimpl\ndef plugrad_backends():\n"
    site.add("plugrad-foo", "1.0", "foo", f"{head}    {source}\n")
    assert problem in manager.load("foo").problem


def test_a_misspelt_hook_is_recorded_with_the_nearest_one(
    site: FakeSite, manager: PluginManager
) -> None:
    source = """
        from plugrad.plugins import hookimpl

        @hookimpl
        def plugrad_backend():
            return []
    """
    site.add("plugrad-foo", "1.0", "foo", source)
    problem = manager.load("foo").problem
    assert "unknown hook, plugrad_backend; did you mean plugrad_backends?" in problem


def test_hook_with_wrong_arguments_is_recorded(site: FakeSite, manager: PluginManager) -> None:
    source = """
        from plugrad.plugins import hookimpl

        @hookimpl
        def plugrad_cli(typer):
            pass
    """
    site.add("plugrad-foo", "1.0", "foo", source)
    assert "'typer'" in manager.load("foo").problem


def test_unknown_backend_says_what_is_installed_and_what_to_install(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "has_nvidia_gpu", lambda: True)
    site.backend("foo", "1.2")
    with pytest.raises(BackendNotFoundError) as caught:
        manager.backend("cuda")
    assert str(caught.value).splitlines() == [
        "No backend named 'cuda' is installed.",
        "Installed: foo (plugrad-foo 1.2).",
        "To get it: pip install plugrad-cuda",
    ]


def test_what_this_machine_cannot_use_is_not_advised(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "has_nvidia_gpu", lambda: False)
    with pytest.raises(BackendNotFoundError) as caught:
        manager.backend("cuda")
    assert "pip install plugrad-cuda" not in str(caught.value)
    assert "NVIDIA's GPUs, and this machine has no driver" in str(caught.value)


def test_unknown_backend_that_nobody_is_known_to_publish(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo", "1.2")
    with pytest.raises(BackendNotFoundError, match=r"If there is .*: pip install plugrad-nope"):
        manager.backend("nope")


def test_misspelt_backend_names_the_nearest_one(site: FakeSite, manager: PluginManager) -> None:
    site.backend("rocket")
    with pytest.raises(BackendNotFoundError, match=r"Did you mean 'rocket'\?"):
        manager.backend("roket")


def test_unknown_backend_without_any_backend_installed(manager: PluginManager) -> None:
    with pytest.raises(BackendNotFoundError, match=r"(?s)Installed: none.*plugrad-cpu"):
        manager.backend("cpu")


def test_unknown_backend_mentions_plugins_that_failed(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-bar", "1.0", "bar", "1 / 0")
    with pytest.raises(BackendNotFoundError, match=r"bar \(plugrad-bar 1.0\): ZeroDivisionError"):
        manager.backend("foo")


def test_loading_an_unknown_plugin_names_the_installed_ones(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo")
    with pytest.raises(PluginError, match="no plugin named 'bar' is installed; installed: foo"):
        manager.load("bar")


def plugin_module(name: str, **hooks: Callable[..., object]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update({hook: hookimpl(function) for hook, function in hooks.items()})
    return module


def test_a_module_can_be_registered_by_hand(manager: PluginManager) -> None:
    backend = Backend("mine", array_type=list)
    module = plugin_module("mine", plugrad_backends=lambda: [backend])
    manager.register(module, "mine")
    assert manager.backend("mine") is backend
    manager.unregister("mine")
    with pytest.raises(BackendNotFoundError):
        manager.backend("mine")


def test_registering_a_name_twice_is_an_error(manager: PluginManager) -> None:
    manager.register(plugin_module("one"), "mine")
    with pytest.raises(ValueError, match="a plugin named 'mine' is registered already"):
        manager.register(plugin_module("two"), "mine")


def test_registering_an_unusable_plugin_raises_and_leaves_nothing(manager: PluginManager) -> None:
    module = plugin_module("bad", plugrad_backends=lambda: [3])
    with pytest.raises(PluginError, match=r"plugin 'bad': .*got int"):
        manager.register(module, "bad")
    assert manager.discovered() == {}


def test_library_objects_of_a_plugin_are_kept_alive(manager: PluginManager) -> None:
    library = object()
    plugin = manager.register(plugin_module("ops", plugrad_ops=lambda: [library]), "ops")
    assert plugin.libraries == [library]


def test_observers_of_backward_passes_are_handed_to_the_engine(
    manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[tuple[Callable[[], object], Callable[[], object]]] = []
    engine = importlib.import_module("plugrad.autograd.engine.callbacks")
    monkeypatch.setattr(engine, "observe_backward", lambda *pair: handed.append(pair))
    seen: list[str] = []
    first = plugin_module("first", plugrad_backward_begin=lambda: seen.append("begin"))
    second = plugin_module("second", plugrad_backward_end=lambda: seen.append("end"))
    manager.register(plugin_module("neither"), "neither")
    assert handed == []
    manager.register(first, "first")
    manager.register(second, "second")
    ((begin, end),) = handed
    begin()
    end()
    assert seen == ["begin", "end"]
    manager.unregister("first")
    begin()
    assert seen == ["begin", "end"]
