"""What is wrong with one plugin stays with it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from plugrad.dispatch.operator import find_operator
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite

HOOKS = "from plugrad.plugins import Backend, hookimpl\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import no_such_array_library", "ModuleNotFoundError"),
        ("def f(:", "SyntaxError"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise LookupError('no driver')", "LookupError: no driver"),
        ("plugrad_api_version = (9, 0)", "PluginError: plugin 'broken' was written for version"),
        (HOOKS + "@hookimpl\ndef plugrad_bakends(): pass\n", "unknown hook, plugrad_bakends"),
        (
            HOOKS + "def plugrad_backends(): return []\n",
            "write @hookimpl, from plugrad",
        ),
        (
            HOOKS + "@hookimpl\ndef plugrad_backends(): return [dict]\n",
            "subclasses of plugrad.plugins.Backend, got the class dict",
        ),
        (
            HOOKS + "class B(Backend):\n    def __init__(self, size): ...\n"
            "@hookimpl\ndef plugrad_backends(): return [B]\n",
            "cannot make the backend B(): ",
        ),
        (
            HOOKS + "@hookimpl\ndef plugrad_backends(): return [Backend('a b', list)]\n",
            "a backend's name must be an identifier",
        ),
        (HOOKS + "@hookimpl\ndef plugrad_ops(): return ['/no/file.yaml']\n", "FileNotFoundError"),
        (HOOKS + "@hookimpl\ndef plugrad_ops(): return {'a': 1}\n", "must return a list, got dict"),
        (HOOKS + "@hookimpl\ndef plugrad_backends(): raise SystemExit\n", "SystemExit"),
        (
            HOOKS + "@hookimpl\ndef plugrad_backends(): return [Backend('x', list)] * 2\n",
            "two backends named 'x'",
        ),
        (HOOKS + "@hookimpl\ndef plugrad_namespaces(): return ['a']\n", "must return a mapping"),
        (HOOKS + "@hookimpl\ndef plugrad_namespaces(): return {'a': 3}\n", "got 3 for 'a'"),
        (HOOKS + "@hookimpl\ndef plugrad_namespaces(): return {'_a': 'b'}\n", "not a public name"),
        (
            HOOKS + "@hookimpl\ndef plugrad_namespaces(): return {'tensor': 'b'}\n",
            "claims 'tensor', which plugrad itself has",
        ),
        (HOOKS + "@hookimpl\ndef plugrad_kernels(): return {3: {}}\n", "must map strings"),
    ],
)
def test_a_broken_plugin_keeps_its_error_and_the_others_work(
    site: FakeSite, manager: PluginManager, source: str, problem: str
) -> None:
    site.add("plugrad-broken", "1.0", "broken", source)
    site.backend("foo")
    assert problem in manager.load("broken").problem
    assert manager.backend("foo").name == "foo"
    assert [plugin.status for plugin in manager.load_all()] == ["failed", "loaded"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("plugrad_foo.plugn", "its entry point is 'plugrad_foo.plugn', but there is no module"),
        ("plugrad_foo.plugin:hooks", "name the module alone, 'plugrad_foo.plugin'"),
        ("plugrad_fo.plugin", "but there is no module 'plugrad_fo'"),
    ],
)
def test_a_misspelt_entry_point_is_named(
    site: FakeSite, manager: PluginManager, target: str, problem: str
) -> None:
    site.add("plugrad-foo", "1.0", "foo", "", target=target)
    assert problem in manager.load("foo").problem


def test_a_plugin_that_has_another_backend_than_its_name_says_is_told(
    site: FakeSite, manager: PluginManager
) -> None:
    source = HOOKS + "@hookimpl\ndef plugrad_backends(): return [Backend('bar', list)]\n"
    site.add("plugrad-foo", "1.0", "foo", source)
    with pytest.raises(BackendNotFoundError) as caught:
        manager.backend("foo")
    assert "'foo' (plugrad-foo 1.0) is installed, but its backends are: 'bar'" in str(caught.value)
    assert "pip install" not in str(caught.value)
    assert manager.backend("bar").name == "bar"


def test_an_interrupt_is_no_error_of_the_plugin(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-foo", "1.0", "foo", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        manager.load("foo")
    assert manager.discovered()["foo"].status == "not loaded"


HALF = """
    from plugrad.library import Library
    from plugrad.plugins import Backend, hookimpl

    lib = Library("half", "DEF")
    lib.define("first(Tensor self) -> Tensor")
    lib.impl("first", lambda x: x, "CompositeImplicitAutograd")
    {at_import}

    @hookimpl
    def plugrad_backends():
        return [Backend("half", list)]

    @hookimpl
    def plugrad_namespaces():
        raise OSError("half way")
"""


@pytest.mark.parametrize("at_import", ["", "1 / 0"])
def test_a_plugin_that_fails_half_way_leaves_nothing_behind(
    site: FakeSite, manager: PluginManager, at_import: str
) -> None:
    module = site.add("plugrad-half", "1.0", "half", HALF.format(at_import=at_import))
    assert manager.load("half").status == "failed"
    assert find_operator("half::first") is None
    assert module not in sys.modules
    assert manager.discovered()["half"].backends == {}
    with pytest.raises(PluginError, match="ZeroDivisionError" if at_import else "half way"):
        manager.backend("half")
    # The namespace of operators can be owned again.
    library = importlib.import_module("plugrad.library").Library("half", "DEF")
    library._destroy()


def test_asking_for_a_backend_while_its_module_is_imported_says_so(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-foo", "1.0", "foo", "import plugrad\nplugrad.ones(2, device='foo')")
    problem = manager.load("foo").problem
    assert "BackendNotFoundError" in problem
    assert "Being loaded just now: foo (plugrad-foo 1.0); use it inside functions" in problem


def test_plugins_are_ordered_by_name_and_distribution_however_they_lie_on_disk(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for distribution, name in (("zz-late", "b"), ("aa", "c"), ("mm", "a"), ("aa-early", "b")):
        site.add(distribution, "1.0", name, "")
    order = [(plugin.name, plugin.distribution) for plugin in manager.load_all()]
    assert order == [("a", "mm"), ("b", "aa-early"), ("b", "zz-late"), ("c", "aa")]
    entry_points = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: entry_points(group=group)[::-1]
    )
    again = PluginManager()
    assert [(one.name, one.distribution) for one in again.load_all()] == order


def test_a_backend_that_nobody_has_is_asked_of_all(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-broken", "1.0", "broken", "1 / 0")
    with pytest.raises(BackendNotFoundError, match=r"Not usable: broken \(plugrad-broken 1\.0\)"):
        manager.backend("foo")
