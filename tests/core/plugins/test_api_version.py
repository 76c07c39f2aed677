"""Which plugins fit this plugrad, and the messages about other plugins."""

from __future__ import annotations

import warnings

import pytest

from plugrad.dispatch.backends.active import activate_backend, active_backends
from plugrad.dispatch.backends.api_version import (
    as_api_version,
    check_api_version,
    deprecated,
)
from plugrad.errors import PluginDeprecationWarning, PluginError
from plugrad.plugins import API_VERSION, Backend
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite


def test_the_version_is_major_and_minor() -> None:
    assert API_VERSION == (1, 0)
    assert Backend("foo", array_type=list).api_version == API_VERSION


def test_an_integer_is_a_major_version() -> None:
    assert as_api_version(2) == (2, 0)
    assert as_api_version([2, 1]) == (2, 1)


@pytest.mark.parametrize("version", ["1.0", 1.0, True, (1,), (1, 0, 0), (1, "0"), (1, -1), None])
def test_other_spellings_are_refused_with_the_right_one(version: object) -> None:
    with pytest.raises(TypeError, match=r"a tuple \(major, minor\) of integers, such as \(1, 0\)"):
        as_api_version(version)
    with pytest.raises(
        PluginError, match="backend 'foo' declares an invalid api_version: a version"
    ):
        check_api_version(version, "backend 'foo'")


@pytest.mark.parametrize("version", [(2, 0), (2, 1), (2, 3), 2])
def test_same_major_and_no_newer_minor_fit(version: object) -> None:
    assert check_api_version(version, "it", current=(2, 3))[0] == 2


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (
            (1, 9),
            "written for version 1.9 of the plugin contract, and this plugrad has version 2.3: "
            "that is too old; upgrade plugrad-foo (pip install --upgrade plugrad-foo), "
            "or downgrade plugrad to a release with version 1.x",
        ),
        (
            (3, 0),
            "written for version 3.0 of the plugin contract, and this plugrad has version 2.3: "
            "that is newer; upgrade plugrad (pip install --upgrade plugrad), "
            "or downgrade plugrad-foo to a release for version 2.3",
        ),
        (
            (2, 4),
            "written for version 2.4 of the plugin contract, and this plugrad has version 2.3: "
            "that is newer; upgrade plugrad (pip install --upgrade plugrad), "
            "or downgrade plugrad-foo to a release for version 2.3",
        ),
    ],
)
def test_what_does_not_fit_says_what_to_install(version: object, remedy: str) -> None:
    with pytest.raises(PluginError) as caught:
        check_api_version(version, "backend 'foo'", "plugrad-foo", current=(2, 3))
    assert str(caught.value) == f"backend 'foo' was {remedy}"


def test_without_a_distribution_the_plugin_is_meant() -> None:
    with pytest.raises(PluginError, match="upgrade the plugin, or downgrade plugrad"):
        check_api_version((0, 1), "backend 'foo'")


def test_a_backend_that_does_not_fit_is_not_activated() -> None:
    with pytest.raises(PluginError, match=r"backend 'misfit' was written for version 1\.7"):
        activate_backend(Backend("misfit", array_type=list, api_version=(1, 7)))
    assert "misfit" not in [active.name for active in active_backends()]


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("(0, 3)", "plugin 'foo' was written for version 0.3"),
        ("'1.0'", "plugin 'foo' declares an invalid api_version"),
    ],
)
def test_a_module_that_does_not_fit_is_refused_before_its_hooks_are_read(
    site: FakeSite, manager: PluginManager, version: str, problem: str
) -> None:
    source = f"""
        from plugrad.plugins import hookimpl

        plugrad_api_version = {version}

        @hookimpl
        def plugrad_hook_of_another_version():
            raise AssertionError
    """
    site.add("plugrad-foo", "1.0", "foo", source)
    assert problem in manager.load("foo").problem


def test_a_backend_of_a_plugin_names_its_distribution(
    site: FakeSite, manager: PluginManager
) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        @hookimpl
        def plugrad_backends():
            return [Backend("foo", array_type=list, api_version=(0, 9))]
    """
    site.add("plugrad-foo", "1.0", "foo", source)
    with pytest.raises(PluginError, match="pip install --upgrade plugrad-foo"):
        manager.backend("foo")


def test_a_module_that_fits_is_loaded(site: FakeSite, manager: PluginManager) -> None:
    site.add("plugrad-foo", "1.0", "foo", "plugrad_api_version = (1, 0)")
    assert manager.load("foo").status == "loaded"


def test_deprecations_warn_in_one_minor_version_and_name_the_caller() -> None:
    def old_method() -> None:
        deprecated("Backend.old()", (2, 3), "use Backend.new()", current=(2, 3))

    with pytest.warns(PluginDeprecationWarning) as caught:
        old_method()
    assert str(caught[0].message) == (
        "Backend.old() is deprecated since version 2.3 of the plugin contract, and will be removed "
        "in the next one: use Backend.new()"
    )
    assert caught[0].filename == __file__


def test_deprecations_are_silent_before_and_errors_after() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deprecated("Backend.old()", (2, 3), "use Backend.new()", current=(2, 2))
    for later in ((2, 4), (3, 0)):
        with pytest.raises(PluginError, match=r"Backend\.old\(\) was deprecated in version 2\.3"):
            deprecated("Backend.old()", (2, 3), "use Backend.new()", current=later)
