"""`plugrad config`, and what `plugrad doctor` says about configuration and conflicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad.cli import doctor
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import BACKEND_PLUGIN, FakeSite

FILE = """
backend = "jax"
disable = ["slow", "plugrad-old"]
[backends.foo]
threads = 4
precise = true
"""


@pytest.fixture
def configured(project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file and a variable that both say something; gives the file's name."""
    (project / "plugrad.toml").write_text(FILE)
    monkeypatch.setenv("PLUGRAD_BACKEND", "cuda")
    plugrad.config.reset()
    return str(project / "plugrad.toml")


def shown(run: Run, *arguments: str) -> Any:
    result = run("config", *arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def row(key: str, value: str, source: str, layer: str, counts: bool = True) -> dict[str, object]:
    return {"key": key, "value": value, "source": source, "layer": layer, "counts": counts}


def test_every_value_is_shown_with_its_source(run: Run, configured: str) -> None:
    default = "the built-in default"
    assert shown(run) == {
        "file": configured,
        "settings": [
            row("device", "", default, "default"),
            row("backend", "cuda", "PLUGRAD_BACKEND in the environment", "environment"),
            row("plugins", "", default, "default"),
            row("disable", "slow, plugrad-old", f"'disable' in {configured}", "file"),
            row("prefer", "", default, "default"),
            row("fallback", "none", default, "default"),
            row("cpu_capability", "", default, "default"),
            row("num_threads", "", default, "default"),
            row("backends.foo.precise", "true", f"'backends.foo.precise' in {configured}", "file"),
            row("backends.foo.threads", "4", f"'backends.foo.threads' in {configured}", "file"),
        ],
    }


def test_show_adds_what_is_overridden(run: Run, configured: str) -> None:
    assert shown(run, "backend", "--show")["settings"] == [
        row("backend", "cuda", "PLUGRAD_BACKEND in the environment", "environment"),
        row("backend", "jax", f"'backend' in {configured}", "file", False),
        row("backend", "cpu", "the built-in default", "default", False),
    ]


def test_people_get_a_table(run: Run, configured: str) -> None:
    result = run("config", "--show")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "backend cuda PLUGRAD_BACKEND in the environment" in lines
    assert "cpu the built-in default (overridden)" in " ".join(lines)
    assert f"File: {configured}" in lines


def test_without_a_file_that_is_said(run: Run) -> None:
    assert "No file configures plugrad here." in run("config").stdout


def test_an_unknown_key_names_the_nearest_one(run: Run) -> None:
    result = run("config", "devise")
    assert result.exit_code == 2
    assert "nothing is set for 'devise'; did you mean 'device'?" in result.stderr


def test_a_configuration_that_cannot_be_used_is_told(run: Run, project: Path) -> None:
    (project / "plugrad.toml").write_text("prefer = 3\n")
    result = run("config")
    assert result.exit_code == 2
    assert "'prefer' in" in result.stderr


@pytest.fixture
def healthy(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    """An installation in which the default device computes."""
    monkeypatch.setattr(doctor, "_try_device", lambda device: "")
    site.backend("cpu", "1.0")
    return site


def examined(run: Run) -> Any:
    return json.loads(run("doctor", "--json").stdout)


def test_the_doctor_lists_conflicts_that_nothing_settles(run: Run, healthy: FakeSite) -> None:
    healthy.add("plugrad-one", "1.0", "one", BACKEND_PLUGIN.format(name="shared"))
    healthy.add("plugrad-two", "2.0", "two", BACKEND_PLUGIN.format(name="shared"))
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: Conflict: plugrad-one 1.0 and plugrad-two 2.0 both provide" in result.stdout
    with plugrad.config.set(prefer=["two"]):
        report = examined(run)
    assert report["problems"] == []
    assert any("backend 'shared' of plugrad-two 2.0 is used" in note for note in report["notes"])


def test_the_doctor_lists_plugins_of_one_name(run: Run, healthy: FakeSite) -> None:
    healthy.backend("foo")
    healthy.add("plugrad-foo-fork", "2.0", "foo", "")
    problems = examined(run)["problems"]
    assert len(problems) == 2
    assert all("both provide a plugin named 'foo'" in problem for problem in problems)
    with plugrad.config.set(prefer=["plugrad-foo"]):
        assert examined(run)["problems"] == []


def test_the_doctor_notes_names_that_mean_nothing_here(
    run: Run, healthy: FakeSite, project: Path
) -> None:
    text = 'disable = ["cppu"]\nprefer = ["plugrad-cpu"]\n[backends.cpuu]\nthreads = 3\n'
    (project / "plugrad.toml").write_text(text)
    report = examined(run)
    assert report["problems"] == []
    notes = "\n".join(report["notes"])
    assert "names 'cppu', which is not an installed plugin or distribution." in notes
    assert "configures the backend 'cpuu', which is not installed; did you mean 'cpu'?" in notes
    assert "plugrad-cpu'" not in notes


def test_the_doctor_notes_disabled_plugins(run: Run, healthy: FakeSite) -> None:
    healthy.add("plugrad-broken", "1.0", "broken", "1 / 0")
    assert run("doctor").exit_code == 1
    with plugrad.config.set(disable=["broken"]):
        report = examined(run)
    assert report["problems"] == []
    assert any("Plugin broken (plugrad-broken 1.0) is disabled by" in n for n in report["notes"])
    assert [plugin["status"] for plugin in report["plugins"]] == ["disabled", "loaded"]


def test_the_doctor_reports_kernels_that_cannot_be_used(
    cpu: object, run: Run, healthy: FakeSite
) -> None:
    # The real backend comes before the fake site, which has a package of its name.
    source = """
        from plugrad.plugins import hookimpl

        @hookimpl
        def plugrad_kernels():
            return {"cpu": "no.such.module"}
    """
    healthy.add("plugrad-fast", "1.0", "fast", source)
    report = examined(run)
    (problem,) = report["problems"]
    assert problem.startswith("Kernels of plugrad-fast 1.0 for backend 'cpu': ModuleNotFoundError")
