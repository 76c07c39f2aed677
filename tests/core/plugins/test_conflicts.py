"""Two plugins that claim the same thing, and how that is settled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.errors import PluginConflictError, PluginError
from plugrad.plugins import load_namespace
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import BACKEND_PLUGIN, FakeSite

BOTH = "{} and {} both provide {}: uninstall one of them, or in plugrad.toml say "
HOW = "disable = ['{1}'] or prefer = ['{0}']"

NAMESPACE = """
    from plugrad.plugins import hookimpl

    @hookimpl
    def plugrad_namespaces():
        return {{"answer": "{package}.plugin:VALUE"}}

    VALUE = {value}
"""

OPERATOR = """
    from plugrad.library import Library

    lib = Library("{namespace}", "FRAGMENT")
    lib.define("rivalled(Tensor self) -> Tensor")
    lib.impl("rivalled", lambda x: x * {factor}, "CompositeImplicitAutograd")
"""


@pytest.fixture(autouse=True)
def no_settings(project: object) -> Iterator[None]:
    """Every test begins with nothing configured."""
    yield
    plugrad.config.reset()


def sentence(first: str, second: str, what: str) -> str:
    handles = (first.split()[0], second.split()[0])
    return BOTH.format(first, second, what) + HOW.format(*handles)


@pytest.fixture
def two_of_one_name(site: FakeSite) -> FakeSite:
    """Two distributions with a plugin called "foo", each with the backend "foo"."""
    site.backend("foo", "1.0")
    site.add("plugrad-foo-fork", "2.0", "foo", BACKEND_PLUGIN.format(name="foo"))
    return site


def test_two_plugins_of_one_name_conflict_when_they_are_asked_for(
    two_of_one_name: FakeSite, manager: PluginManager
) -> None:
    two_of_one_name.backend("bar")
    assert manager.backend("bar").name == "bar"
    with pytest.raises(PluginConflictError) as caught:
        manager.backend("foo")
    expected = sentence("plugrad-foo 1.0", "plugrad-foo-fork 2.0", "a plugin named 'foo'")
    assert expected in str(caught.value)
    assert [plugin.status for plugin in manager.load_all()].count("conflict") == 2


@pytest.mark.parametrize(
    "settings", [{"disable": ["plugrad-foo-fork"]}, {"prefer": ["plugrad-foo"]}]
)
def test_a_conflict_of_names_is_settled_by_the_configuration(
    two_of_one_name: FakeSite, manager: PluginManager, settings: dict[str, list[str]]
) -> None:
    with plugrad.config.set(settings):
        assert type(manager.backend("foo")).__module__ == "plugrad_foo.plugin"
        assert manager.discovered()["foo"].distribution == "plugrad-foo"


def test_the_other_one_may_be_preferred(two_of_one_name: FakeSite, manager: PluginManager) -> None:
    with plugrad.config.set(prefer=["plugrad_foo.fork"]):  # pip takes these names for the same
        assert type(manager.backend("foo")).__module__ == "plugrad_foo_fork.plugin"


def test_preferring_the_name_they_share_settles_nothing(
    two_of_one_name: FakeSite, manager: PluginManager
) -> None:
    with plugrad.config.set(prefer=["foo"]), pytest.raises(PluginConflictError):
        manager.backend("foo")


@pytest.fixture
def two_with_one_backend(site: FakeSite) -> FakeSite:
    """The plugins "one" and "two", each with the backend "shared"."""
    site.add("plugrad-one", "1.0", "one", BACKEND_PLUGIN.format(name="shared"))
    site.add("plugrad-two", "2.0", "two", BACKEND_PLUGIN.format(name="shared"))
    return site


def test_two_backends_of_one_name_conflict(
    two_with_one_backend: FakeSite, manager: PluginManager
) -> None:
    two_with_one_backend.backend("other")
    assert manager.backend("other").name == "other"
    with pytest.raises(PluginConflictError) as caught:
        manager.backend("shared")
    assert str(caught.value) == sentence("plugrad-one 1.0", "plugrad-two 2.0", "backend 'shared'")


@pytest.mark.parametrize(
    ("settings", "winner"),
    [
        ({"prefer": ["two"]}, "plugrad_two"),
        ({"prefer": ["two", "one"]}, "plugrad_two"),
        ({"disable": ["plugrad-two"]}, "plugrad_one"),
    ],
)
def test_a_conflict_of_backends_is_settled_by_the_configuration(
    two_with_one_backend: FakeSite,
    manager: PluginManager,
    settings: dict[str, list[str]],
    winner: str,
) -> None:
    with plugrad.config.set(settings):
        assert type(manager.backend("shared")).__module__ == f"{winner}.plugin"


def test_a_backend_belongs_to_the_plugin_of_its_name(
    two_with_one_backend: FakeSite, manager: PluginManager
) -> None:
    two_with_one_backend.add(
        "plugrad-shared", "3.0", "shared", BACKEND_PLUGIN.format(name="shared")
    )
    manager.load_all()
    assert type(manager.backend("shared")).__module__ == "plugrad_shared.plugin"
    (settled,) = manager.conflicts()
    assert settled.settled
    assert "of plugrad-shared 3.0 is used, which has that name" in settled.text


def test_two_claims_of_one_name_under_plugrad_conflict(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-one", "1.0", "one", NAMESPACE.format(package="plugrad_one", value=1))
    site.add("plugrad-two", "2.0", "two", NAMESPACE.format(package="plugrad_two", value=2))
    with pytest.raises(PluginConflictError) as caught:
        load_namespace("answer")
    expected = sentence("plugrad-one 1.0", "plugrad-two 2.0", "plugrad.answer")
    assert str(caught.value) == expected
    assert [conflict.text for conflict in manager.conflicts()] == [expected]
    with plugrad.config.set(prefer=["two"]):
        assert load_namespace("answer") == 2


def test_two_backends_that_ask_for_one_dispatch_key_conflict(
    site: FakeSite, manager: PluginManager
) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        @hookimpl
        def plugrad_backends():
            return [Backend({name!r}, array_type=list, key_name="SharedKey")]
    """
    site.add("plugrad-keya", "1.0", "keya", source.format(name="keya"))
    site.add("plugrad-keyb", "1.0", "keyb", source.format(name="keyb"))
    activate_backend(manager.backend("keya"))
    try:
        with pytest.raises(PluginConflictError) as caught:
            manager.backend("keyb")
    finally:
        deactivate_backend("keya")
    what = "the dispatch key 'SharedKey'"
    assert str(caught.value) == sentence("plugrad-keya 1.0", "plugrad-keyb 1.0", what)
    assert [one.settled for one in manager.conflicts()] == [False]


@pytest.mark.usefixtures("cpu")
def test_two_definitions_of_one_operator_conflict(site: FakeSite, manager: PluginManager) -> None:
    source = OPERATOR.format(namespace="contested", factor=1)
    site.add("plugrad-one", "1.0", "one", source)
    site.add("plugrad-two", "2.0", "two", source + "    lib.define('own(Tensor self) -> Tensor')\n")
    assert manager.load("one").status == "loaded"
    plugin = manager.load("two")
    what = "the operator contested::rivalled"
    assert isinstance(plugin.error, PluginConflictError)
    assert str(plugin.error) == sentence("plugrad-one 1.0", "plugrad-two 2.0", what)
    assert dir(plugrad.ops.contested).count("own") == 0
    assert plugrad.ops.contested.rivalled(plugrad.ones(1)).item() == 1.0
    manager.unload("one")


def test_two_custom_ops_of_one_name_conflict(site: FakeSite, manager: PluginManager) -> None:
    source = """
        import plugrad

        @plugrad.library.custom_op("contested::custom", mutates_args=())
        def custom(x: plugrad.Tensor) -> plugrad.Tensor:
            return x + 1

        @plugrad.library.custom_op("contested::custom", mutates_args=())
        def custom_again(x: plugrad.Tensor) -> plugrad.Tensor:
            return x + 1
    """
    site.add("plugrad-one", "1.0", "one", source)
    site.add("plugrad-two", "2.0", "two", source)
    assert manager.load("one").problem == ""
    what = "the operator contested::custom"
    assert str(manager.load("two").error) == sentence("plugrad-one 1.0", "plugrad-two 2.0", what)
    manager.unload("one")


@pytest.mark.usefixtures("cpu")
def test_a_preferred_plugin_defines_first(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-one", "1.0", "one", OPERATOR.format(namespace="favoured", factor=1))
    site.add("plugrad-two", "2.0", "two", OPERATOR.format(namespace="favoured", factor=2))
    with plugrad.config.set(prefer=["two"]):
        assert manager.load("one").status == "failed"
        assert plugrad.ops.favoured.rivalled(plugrad.ones(1)).item() == 2.0
    manager.unload("two")


def test_two_owners_of_one_namespace_of_operators_conflict(
    site: FakeSite, manager: PluginManager
) -> None:
    source = "from plugrad.library import Library\nlib = Library('owned', 'DEF')\n"
    site.add("plugrad-one", "1.0", "one", source)
    site.add("plugrad-two", "2.0", "two", source)
    manager.load("one")
    with pytest.raises(PluginError, match=r"plugrad-two 2\.0 both provide a library of"):
        raise manager.load("two").error or AssertionError
    manager.unload("one")


@pytest.mark.usefixtures("cpu")
def test_two_kernels_by_library_for_one_key_conflict(
    site: FakeSite, manager: PluginManager
) -> None:
    definition = OPERATOR.format(namespace="kernelled", factor=1)
    source = """
        from plugrad.library import Library

        lib = Library("kernelled", "IMPL", "CPU")
        lib.impl("rivalled", lambda array: array)
    """
    site.add("plugrad-ops", "1.0", "kernelled", definition)
    site.add("plugrad-one", "1.0", "one", source)
    site.add("plugrad-two", "2.0", "two", source)
    manager.load("kernelled")
    manager.load("one")
    what = "a kernel of kernelled::rivalled for CPU"
    assert str(manager.load("two").error) == sentence("plugrad-one 1.0", "plugrad-two 2.0", what)
    manager.unload("one")
    manager.unload("kernelled")


def test_disabled_plugins_are_as_if_they_were_not_installed(
    site: FakeSite, manager: PluginManager, project: object
) -> None:
    site.backend("foo", "1.2")
    with plugrad.config.set(disable=["foo"]):
        with pytest.raises(plugrad.plugins.BackendNotFoundError) as caught:
            manager.backend("foo")
        assert manager.load("foo").status == "disabled"
        assert manager.backends() == {}
    assert str(caught.value).splitlines() == [
        "No backend named 'foo' is installed.",
        "Installed: none.",
        "Disabled: foo (plugrad-foo 1.2), by plugrad.config.set(disable=['foo'])",
    ]
    assert manager.backend("foo").name == "foo"


def test_a_disabled_namespace_says_that_it_is_disabled(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-nn", "1.0", "nn", "")
    message = r"plugrad.nn is part of plugrad-nn, whose plugin is disabled by plugrad\.config\.set"
    with plugrad.config.set(disable=["nn"]), pytest.raises(ModuleNotFoundError, match=message):
        load_namespace("nn")
