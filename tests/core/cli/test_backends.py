"""`plugrad backends`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugrad.cli import doctor
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import FakeSite


def listed(run: Run) -> dict[str, dict[str, object]]:
    result = run("backends", "--json")
    assert result.exit_code == 0
    return {report["name"]: report for report in json.loads(result.stdout)["backends"]}


def test_installed_backends_are_listed(run: Run, site: FakeSite) -> None:
    site.backend("alpha", "1.2")
    assert listed(run)["alpha"] == {
        "name": "alpha",
        "distribution": "plugrad-alpha",
        "version": "1.2",
        "devices": 1,
        "status": "ready",
        "error": "",
        "chosen": False,
        "facts": {},
        "place": "",
        "mend": "",
    }


def test_the_chosen_backend_is_marked(run: Run, site: FakeSite, project: Path) -> None:
    site.backend("alpha")
    (project / "plugrad.toml").write_text('backend = "alpha"\n')
    assert listed(run)["alpha"]["chosen"] is True
    text = run("backends").stdout
    assert f"Device 'alpha' was chosen by 'backend' in {project / 'plugrad.toml'}." in text
    assert "→" in text


def test_a_failing_plugin_is_listed_with_its_error(run: Run, site: FakeSite) -> None:
    site.add("plugrad-foo", "2.0", "foo", "import no_such_array_library")
    report = listed(run)["foo"]
    assert report["status"] == "failed"
    assert "no_such_array_library" in str(report["error"])
    assert "no_such_array_library" in run("backends").stdout


def test_a_backend_that_cannot_be_activated_is_listed_as_failed(
    run: Run, site: FakeSite, project: Path
) -> None:
    site.backend("alpha")
    (project / "plugrad.toml").write_text("[backends.alpha]\nthreads = 3\n")
    report = listed(run)["alpha"]
    assert report["status"] == "failed"
    assert "backend 'alpha' has no option 'threads'" in str(report["error"])
    doctor = run("doctor")
    assert "Problem: Backend 'alpha' (plugrad-alpha 1.0): ConfigError" in doctor.stdout
    assert doctor.exit_code == 1


def test_a_backend_whose_devices_cannot_be_counted_is_listed_as_failed(
    run: Run, site: FakeSite
) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        class Beta(Backend):
            def __init__(self):
                super().__init__("beta", array_type=list)

            def device_count(self):
                raise OSError("driver too old")

        @hookimpl
        def plugrad_backends():
            return [Beta]
    """
    site.add("plugrad-beta", "1.0", "beta", source)
    report = listed(run)["beta"]
    assert (report["status"], report["error"]) == ("failed", "OSError: driver too old")


def test_a_backend_without_devices_is_not_ready(run: Run, site: FakeSite) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        class Beta(Backend):
            def __init__(self):
                super().__init__("beta", array_type=list)

            def device_count(self):
                return 0

        @hookimpl
        def plugrad_backends():
            return [Beta]
    """
    site.add("plugrad-beta", "1.0", "beta", source)
    assert listed(run)["beta"]["status"] == "no device"


def test_a_backend_without_devices_says_why_and_nothing_is_broken(
    run: Run, site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        class Beta(Backend):
            def __init__(self):
                super().__init__("beta", array_type=list)

            def device_count(self):
                return 0

            def problem(self):
                return "driver not found: install one"

        @hookimpl
        def plugrad_backends():
            return [Beta]
    """
    site.backend("cpu", "1.0")
    site.add("plugrad-beta", "1.0", "beta", source)
    assert listed(run)["beta"]["error"] == "driver not found: install one"
    assert "no device: driver not found: install one" in " ".join(run("backends").stdout.split())
    monkeypatch.setattr(doctor, "_try_device", lambda device: "")
    result = run("doctor")
    assert result.exit_code == 0
    note = "Note: Backend 'beta' (plugrad-beta 1.0): no device: driver not found: install one"
    assert note in " ".join(result.stdout.split())


def test_nothing_installed_says_what_to_install(run: Run) -> None:
    text = run("backends").stdout
    assert "pip install plugrad-cpu" in text
    assert "Backend 'cpu' is not installed." in text


def test_source_of_the_choice_is_in_the_json(run: Run) -> None:
    data = json.loads(run("backends", "--json").stdout)
    assert data["device"] == "cpu"
    assert data["source"] == "the built-in default"
