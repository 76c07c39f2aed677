"""`plugrad doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad.cli import doctor
from tests.conftest import core_kind
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import FakeSite


def examined(run: Run) -> Any:
    return json.loads(run("doctor", "--json").stdout)


@pytest.fixture
def healthy(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    """An installation in which the default device computes."""
    monkeypatch.setattr(doctor, "_try_device", lambda device: "")
    site.backend("cpu", "1.0")
    return site


def test_a_healthy_installation_has_no_problems(run: Run, healthy: FakeSite) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert "Everything works." in result.stdout


def test_versions_and_core_are_told(run: Run, healthy: FakeSite) -> None:
    report = examined(run)
    assert {"plugrad", "python", "numpy"} <= set(report["versions"])
    assert report["core"] == core_kind()


def test_plugins_are_listed_with_what_they_provide(run: Run, healthy: FakeSite) -> None:
    (plugin,) = examined(run)["plugins"]
    assert plugin == {
        "name": "cpu",
        "distribution": "plugrad-cpu",
        "version": "1.0",
        "status": "loaded",
        "provides": ["backend cpu"],
        "error": "",
        "place": "",
        "mend": "",
    }


def test_a_failing_plugin_is_a_problem(run: Run, healthy: FakeSite) -> None:
    healthy.add("plugrad-foo", "2.0", "foo", "import no_such_array_library")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: Plugin foo (plugrad-foo 2.0): ModuleNotFoundError" in result.stdout


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "Plugin foo: plugrad-foo 2.0 requires plugrad<0.0.2, and this is plugrad"),
        ("import no_such_library", "Plugin foo (plugrad-foo 2.0): ModuleNotFoundError"),
    ],
)
def test_a_plugin_for_other_releases_is_a_problem_with_its_mend(
    run: Run, healthy: FakeSite, source: str, told: str
) -> None:
    healthy.add("plugrad-foo", "2.0", "foo", source, requires="plugrad<0.0.2")
    (problem,) = examined(run)["problems"]
    assert problem.startswith(told)
    assert "\n  to fix it: `pip install --upgrade plugrad plugrad-foo` installs rel" in problem
    assert run("doctor").exit_code == 1


def test_settings_are_listed_with_their_sources(
    run: Run, healthy: FakeSite, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plugrad.toml").write_text('backend = "jax"\nplugins = ["cpu"]\n')
    monkeypatch.setenv("PLUGRAD_DEVICE", "cpu")
    report = examined(run)
    assert report["settings"] == [
        {"key": "device", "value": "cpu", "source": "PLUGRAD_DEVICE in the environment"},
        {"key": "backend", "value": "jax", "source": f"'backend' in {project / 'plugrad.toml'}"},
        {"key": "plugins", "value": "cpu", "source": f"'plugins' in {project / 'plugrad.toml'}"},
    ]
    assert (report["device"], report["source"]) == ("cpu", "PLUGRAD_DEVICE in the environment")


def test_broken_configuration_is_a_problem(run: Run, healthy: FakeSite, project: Path) -> None:
    (project / "plugrad.toml").write_text("backend = 3\n")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: Configuration: 'backend' in" in result.stdout


def test_default_device_that_cannot_compute_is_a_problem(run: Run, site: FakeSite) -> None:
    site.backend("cpu")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: Device 'cpu' (chosen by the built-in default)" in result.stdout


def test_incomplete_core_is_a_problem(
    run: Run, healthy: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "COMPILED", ("plugrad.dtype", "plugrad.no_such_module"))
    result = run("doctor")
    assert result.exit_code == 1
    assert "incomplete: plugrad.no_such_module is missing; reinstall plugrad." in result.stdout


def test_missing_compiler_is_told_for_an_interpreted_core(
    run: Run, healthy: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_core_kind", lambda: "interpreted")
    monkeypatch.setattr("shutil.which", lambda command: None)
    report = examined(run)
    assert report["compiler"] == ""
    assert report["notes"] == [
        "The core is interpreted; install a C compiler and reinstall to have it compiled."
    ]
    assert report["problems"] == []


DESCRIBED = """
import numpy as np
from plugrad.plugins import Backend, hookimpl

class Described(Backend):
    def __init__(self):
        super().__init__("foo", array_type=np.ndarray)

    def kernels(self):
        return {}

    def describe(self):
        return {DESCRIPTION}

@hookimpl
def plugrad_backends():
    return [Described]
"""


def test_backends_tell_of_themselves(run: Run, healthy: FakeSite) -> None:
    text = DESCRIBED.replace("{DESCRIPTION}", '{"library": "foo 3.1", "driver": "none needed"}')
    healthy.add("plugrad-foo", "2.0", "foo", text)
    (foo,) = [one for one in examined(run)["backends"] if one["name"] == "foo"]
    assert foo["facts"] == {"library": "foo 3.1", "driver": "none needed"}
    assert "none needed" in run("doctor").stdout


def test_a_backend_that_fails_to_describe_itself_is_used_all_the_same(
    run: Run, healthy: FakeSite
) -> None:
    healthy.add("plugrad-foo", "2.0", "foo", DESCRIBED.replace("{DESCRIPTION}", "1 / 0"))
    (foo,) = [one for one in examined(run)["backends"] if one["name"] == "foo"]
    assert foo["status"] == "ready"
    assert foo["facts"] == {"describe()": "ZeroDivisionError: division by zero"}


def test_the_cpu_tells_its_blas_and_threads() -> None:
    from plugrad_cpu.backend import CpuBackend

    facts = CpuBackend().describe()
    assert set(facts) == {"numpy", "BLAS", "threads"}
    assert "for BLAS" in facts["threads"]


VARIANTS = """
from plugrad.plugins import Variant, hookimpl

def missing():
    return "libswift is not installed: pip install libswift"

@hookimpl
def plugrad_variants():
    return {"foo": [
        Variant("exp", abs, name="wide", features=["wings"], least=10),
        Variant("sin", abs, name="wide", features=["wings"]),
        Variant("cos", abs, name="fins", features=["fins"]),
        Variant("tan", abs, name="lib", problem=missing),
    ]}
"""


def test_variants_of_kernels_are_listed_and_why_one_is_not_used(
    run: Run, healthy: FakeSite
) -> None:
    text = DESCRIBED.replace("{DESCRIPTION}", "{}").replace(
        "    def describe",
        """    def features(self, capability):
        return {"wings": not capability, "fins": False}

    def describe""",
    )
    healthy.add("plugrad-foo", "2.0", "foo", text)
    healthy.add("plugrad-swift", "3.0", "swift", VARIANTS)
    report = examined(run)
    rows = [
        (one["name"], one["operators"], one["needs"], one["problem"]) for one in report["variants"]
    ]
    assert rows == [
        ("wide", ["exp", "sin"], "wings", ""),
        ("fins", ["cos"], "fins", "it needs fins, which is not here"),
        ("lib", ["tan"], "", "libswift is not installed: pip install libswift"),
    ]
    assert (
        "The variant 'lib' of plugrad-swift 3.0 on backend 'foo' is not used: libswift is not "
        "installed: pip install libswift"
    ) in report["notes"]
    assert report["problems"] == []
    assert "Variants of kernels" in run("doctor").stdout
    with plugrad.config.set(cpu_capability="default"):
        rules_out = "it needs wings, which plugrad.config.set(cpu_capability='default') rules out"
        assert examined(run)["variants"][0]["problem"] == rules_out


SWIFT = """
from plugrad.plugins import hookimpl

@hookimpl
def plugrad_kernels():
    return {"foo": {"exp": abs, "sin": abs, "sinn": abs}}
"""


@pytest.mark.filterwarnings("ignore::plugrad.plugins.PluginWarning")
def test_kernels_of_other_packages_are_listed_for_every_backend(
    run: Run, healthy: FakeSite
) -> None:
    text = DESCRIBED.replace("return {}", 'return {"exp": abs}').replace("{DESCRIPTION}", "{}")
    healthy.add("plugrad-foo", "2.0", "foo", text)
    healthy.add("plugrad-swift", "3.0", "swift", SWIFT)
    report = examined(run)
    assert report["kernels"] == [
        {"backend": "foo", "owner": "plugrad-swift 3.0", "operators": ["sin"]}
    ]
    notes = [note for note in report["notes"] if "swift" in note]
    assert notes == [
        "Conflict: plugrad-swift 3.0 provides kernels for 'exp' on backend 'foo', which has its "
        "own: those are used, unless plugrad.toml says prefer = ['plugrad-swift'].",
        "plugrad-swift 3.0 has, for backend 'foo', a kernel for 'sinn', but there is no operator "
        "of that name; did you mean 'sin'? It is left out.",
    ]
    with plugrad.config.set({"kernels.foo.exp": "swift"}):
        report = examined(run)
        shown = run("doctor").stdout
    assert report["kernels"][0]["operators"] == ["exp", "sin"]
    assert report["problems"] == []
    assert "plugrad-swift 3.0's kernels for 'exp' on backend 'foo' are used, not those of " in shown
    assert "chosen by plugrad.config.set(kernels.foo.exp='swift')." in shown


def test_a_choice_for_a_backend_that_is_not_there_is_noted(run: Run, healthy: FakeSite) -> None:
    with plugrad.config.set({"kernels.cpuu.exp": "swift"}):
        notes = examined(run)["notes"]
    assert any(
        "the backend 'cpuu', which is not installed; did you mean 'cpu'?" in n for n in notes
    )


HOOK = "from plugrad.plugins import Backend, hookimpl\n\n@hookimpl\n"
BREAKS = {
    "syntax": ("x = 1\ndef f(:\n", 2, "correct it, or install another version"),
    "missing import": ("\n\nimport no_such_library.part", 3, "`pip install no_such_library`"),
    "own module": ("import plugrad_foo.other", 1, "pip install --force-reinstall --no-deps"),
    "name": ("from numpy import no_such_name", 1, "versions of plugrad-foo and numpy that fit"),
    "error": ("def f():\n    1 / 0\nf()", 2, "PLUGRAD_DISABLE=plugrad-foo leaves it out"),
    "unmarked hook": ("\ndef plugrad_ops(): return []", 2, "correct it"),
    "hook's result": (HOOK + "def plugrad_ops():\n    return {}", 3, "correct it"),
    "error in a hook": (HOOK + "def plugrad_ops():\n    raise OSError", 5, "correct it"),
    "signature": (HOOK + "def plugrad_ops(wrong):\n    return []", 3, "correct it"),
    "kernels": (HOOK + "def plugrad_kernels():\n    return {'cpu': 'math:nothing'}", 0, ""),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_failed_plugin_is_told_once_with_file_line_and_mend(
    run: Run, healthy: FakeSite, name: str
) -> None:
    source, line, mend = BREAKS[name]
    module = healthy.add("plugrad-foo", "2.0", "foo", source)
    with plugrad.config.set(device="foo"):
        result = run("doctor")
    if line:
        assert result.exit_code == 1
        place = healthy.folder / f"{module.replace('.', '/')}.py"
        assert f"\n  at {place}:{line}\n  to fix it: " in result.stdout
    said = [text for text in result.stdout.splitlines() if "foo 2.0" in text and "Error" in text]
    assert len(said) <= 1
    assert mend in result.stdout


def test_a_wrong_entry_point_is_told_with_its_mend(run: Run, healthy: FakeSite) -> None:
    healthy.add("plugrad-foo", "2.0", "foo", "", target="plugrad_foo.plugn")
    (problem,) = examined(run)["problems"]
    told, mend = problem.splitlines()
    assert "its entry point is 'plugrad_foo.plugn', but there is no module" in told
    assert mend.startswith("  to fix it: name the module in the table [project.entry-points]")


def test_kernels_that_cannot_be_had_are_told_with_file_and_line(
    run: Run, healthy: FakeSite
) -> None:
    text = DESCRIBED.replace("{DESCRIPTION}", "{}")
    healthy.add("plugrad-foo", "2.0", "foo", text)
    hook = "def plugrad_kernels():\n    return {'foo': 'plugrad_swift.kernels'}"
    healthy.add("plugrad-swift", "3.0", "swift", HOOK + hook)
    healthy.module("plugrad_swift.kernels", "from plugrad.plugins import kernel\n1 / 0\n")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: Kernels of plugrad-swift 3.0 for backend 'foo': ZeroDiv" in result.stdout
    assert "plugrad_swift/kernels.py:2\n  to fix it: correct it" in result.stdout


def test_a_backend_that_cannot_be_activated_is_told_with_file_and_line(
    run: Run, healthy: FakeSite
) -> None:
    text = DESCRIBED.replace("return {}", "return {}[1]").replace("{DESCRIPTION}", "{}")
    healthy.add("plugrad-foo", "2.0", "foo", text)
    result = run("doctor")
    assert "Problem: Backend 'foo' (plugrad-foo 2.0): KeyError: 1\n  at " in result.stdout
    assert "plugin.py:10\n" in result.stdout


ENTRY = """
- func: one(Tensor self) -> Tensor
  composite: f
  doc: d.

- func: two(Tensor self) -> Tensor
  compositee: f
  doc: d.
"""


@pytest.mark.parametrize(("text", "line"), [(ENTRY, 6), (ENTRY.replace("- func", " - func", 1), 3)])
def test_a_wrong_entry_is_told_with_its_line(
    run: Run, healthy: FakeSite, text: str, line: int
) -> None:
    path = healthy.folder / "operators.yaml"
    path.write_text(text)
    healthy.add("plugrad-foo", "2.0", "foo", HOOK + f"def plugrad_ops():\n    return ['{path}']")
    (problem,) = examined(run)["problems"]
    assert f"\n  at {path}:{line}\n" in problem
