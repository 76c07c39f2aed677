"""Which releases of plugrad fit a plugin, and the messages about others.

Oracle: pip's rules, from the `packaging` library, and handwritten cases.
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
from packaging.specifiers import SpecifierSet

import plugrad
from plugrad.errors import PluginError, PluginWarning
from plugrad.plugins.loading.manager import PluginManager
from plugrad.plugins.releases import fitting_range, misfit
from tests.core.plugins.conftest import BACKEND_PLUGIN, FakeSite

OLD = "plugrad<0.0.2,>=0.0.1"


@pytest.mark.parametrize(
    ("version", "fitting", "others"),
    [
        ("0.2.0", ["0.2", "0.2.7"], ["0.1.9", "0.3.0", "0.3.0rc1", "1.0"]),
        ("0.9.4", ["0.9.0", "0.9.5"], ["0.10.0", "1.0"]),
        ("1.4.2", ["1.4.0", "1.5.0"], ["1.3.9", "2.0.0", "2.0.0rc1"]),
        ("0.3.0rc1", ["0.3.0rc1", "0.3.0rc2", "0.3.0", "0.3.1"], ["0.2.9", "0.3.0b2", "0.4.0"]),
    ],
)
def test_a_range_ends_where_something_may_break(
    version: str, fitting: list[str], others: list[str]
) -> None:
    found = SpecifierSet(fitting_range(version))
    assert version in found
    assert [one for one in fitting if found.contains(one, prereleases=True)] == fitting
    assert [one for one in others if found.contains(one, prereleases=True)] == []


def test_what_is_no_version_has_no_range() -> None:
    with pytest.raises(ValueError, match="'two' is not a version such as"):
        fitting_range("two")


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("plugrad<0.3,>=0.2", ""),
        ("plugrad[cli,cpu]<0.3,>=0.2", ""),
        ("plugrad", ""),
        ("plugrad>=0.1", ""),
        ("plugrad (>=0.1)", ""),
        ("plugrad==0.2.*", ""),
        ("plugrad<0.2,>=0.1", "plugrad<0.2,>=0.1"),
        ("plugrad [codegen] (<0.2)", "plugrad<0.2"),
        ("PlugRad==0.1.*", "plugrad==0.1.*"),
        ("plugrad>=0.3", "plugrad>=0.3"),
        # Another distribution, one that was not requested, and one that pip itself refuses.
        ("plugrad-cpu<0.2", ""),
        ("plugrad_cpu<0.2", ""),
        ('plugrad<0.2; extra == "test"', ""),
        ('plugrad<0.2; python_version < "3"', ""),
        ("plugrad is old", ""),
    ],
)
def test_a_requirement_that_this_release_does_not_meet_is_found(
    requirement: str, found: str
) -> None:
    assert misfit(["numpy>=2", requirement], "0.2.0") == found


def test_a_pre_release_is_older_than_the_release() -> None:
    assert misfit(["plugrad<0.4,>=0.3"], "0.3.0rc1") == "plugrad<0.4,>=0.3"
    assert misfit(["plugrad<0.4,>=0.3.0rc1"], "0.3.0rc1") == ""


def test_a_plugin_for_other_releases_is_loaded_with_a_warning(
    site: FakeSite, manager: PluginManager
) -> None:
    source = BACKEND_PLUGIN.format(name="foo")
    site.add("plugrad-foo", "1.0", "foo", source, requires=OLD)
    with pytest.warns(PluginWarning) as caught:
        assert manager.load("foo").status == "loaded"
    assert [str(one.message) for one in caught] == [
        f"plugrad-foo 1.0 requires {OLD}, and this is plugrad {plugrad.__version__}: it may not "
        "work. `pip install --upgrade plugrad plugrad-foo` installs releases that fit."
    ]


def test_a_plugin_that_fails_and_is_for_other_releases_says_both(
    site: FakeSite, manager: PluginManager
) -> None:
    site.add("plugrad-foo", "1.0", "foo", "from plugrad import gone", requires=OLD)
    with pytest.raises(PluginError) as caught:
        manager.backend("foo")
    text = str(caught.value)
    assert "ImportError: cannot import name 'gone'" in text
    assert f"\nplugrad-foo 1.0 requires {OLD}, and this is plugrad {plugrad.__version__}: " in text
    assert "`pip install --upgrade plugrad plugrad-foo`" in text


def test_a_plugin_that_fits_is_loaded_in_silence(site: FakeSite, manager: PluginManager) -> None:
    source = BACKEND_PLUGIN.format(name="foo")
    requires = f"plugrad{fitting_range(plugrad.__version__)}"
    site.add("plugrad-foo", "1.0", "foo", source, requires=requires)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert manager.load("foo").status == "loaded"


def test_a_new_release_of_a_plugin_is_looked_at_anew(
    site: FakeSite, manager: PluginManager
) -> None:
    source = BACKEND_PLUGIN.format(name="foo")
    site.add("plugrad-foo", "1.0", "foo", source, requires=OLD)
    assert manager.discovered()["foo"].misfit == OLD
    site.uninstall("foo")
    site.add("plugrad-foo", "1.1", "foo", source, requires="plugrad>=0.1")
    manager.rescan()
    assert manager.discovered()["foo"].misfit == ""


def test_ranges_of_our_own_are_compared_without_packaging() -> None:
    program = (
        "import sys, plugrad; from plugrad.plugins.releases import *; "
        "ours = 'plugrad[cpu]' + fitting_range(plugrad.__version__); "
        "misfit([ours, ours + '; extra == \"demo\"'], plugrad.__version__); "
        "assert 'packaging' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
