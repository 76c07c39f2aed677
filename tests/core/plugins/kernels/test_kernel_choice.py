"""The package whose kernel computes an operator can be chosen: ``"cpu.exp" = "plugrad-moon"``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import plugrad
from plugrad.config import ConfigError
from plugrad.dispatch.backends.active import ActiveBackend, activate_backend
from plugrad.plugins.loading.manager import PluginManager
from plugrad_cpu.backend import CpuBackend
from tests.core.plugins.conftest import FakeSite

PLUGIN = """
    from plugrad.plugins import hookimpl

    def kernel(number):
        return lambda a, *rest: a * 0 + number

    @hookimpl
    def plugrad_kernels():
        return {{"cpu": {{"exp": kernel({0}), "sin": kernel({0}), "max": kernel({0})}}}}
"""


@pytest.fixture(autouse=True)
def rivals(site: FakeSite, manager: PluginManager, project: Path) -> Iterator[None]:
    """Two packages with kernels for the same operators, and one without any."""
    site.add("plugrad-moon", "1.0", "moon", PLUGIN.format(41))
    site.add("plugrad-sun", "2.0", "sun", PLUGIN.format(42))
    site.add("plugrad-void", "1.0", "void", "")
    yield
    for name in manager.discovered():
        manager.unload(name)


def values() -> tuple[float, float]:
    x = plugrad.zeros(1)
    return x.exp().item(), x.sin().item()


@pytest.mark.parametrize("name", ["plugrad-moon", "moon", "Plugrad_Moon"])
def test_a_choice_is_for_one_operator_and_loads_the_package(cpu: ActiveBackend, name: str) -> None:
    with plugrad.config.set({"kernels.cpu.exp": name}):
        assert values() == (41.0, 0.0)
    assert values() == (1.0, 0.0)


def test_a_choice_counts_before_a_preference(cpu: ActiveBackend) -> None:
    with plugrad.config.set({"kernels.cpu.sin": "moon"}, prefer=["sun"]):
        assert values() == (42.0, 41.0)
    with plugrad.config.set(prefer=["sun"]):
        assert values() == (42.0, 42.0)


def test_the_backends_own_kernel_can_be_chosen(manager: PluginManager, site: FakeSite) -> None:
    source = """
        from plugrad.plugins import hookimpl
        from plugrad_cpu.backend import CpuBackend

        @hookimpl
        def plugrad_backends():
            return [CpuBackend]
    """
    site.add("plugrad-own", "3.0", "cpu", source)
    manager.rescan()
    with plugrad.config.set({"kernels.cpu.sin": "plugrad-own"}, prefer=["sun"]):
        assert values() == (42.0, 0.0)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plugrad.toml", '[kernels]\n"cpu.exp" = "moon"\n'),
        ("plugrad.toml", '[kernels]\ncpu.exp = "moon"\n'),
        ("plugrad.toml", '[kernels.cpu]\n"plugrad::exp" = "moon"\n'),
        ("pyproject.toml", '[tool.plugrad.kernels]\n"cpu.exp" = "plugrad-moon"\n'),
    ],
)
def test_a_file_can_choose(manager: PluginManager, project: Path, file: str, text: str) -> None:
    (project / file).write_text(text)
    plugrad.config.reset()
    activate_backend(CpuBackend())
    assert values() == (41.0, 0.0)
    setting = plugrad.config.setting("kernels.cpu.exp")
    assert setting.source == f"'kernels.cpu.exp' in {project / file}"


def test_a_variable_counts_before_the_file_for_the_operators_it_names(
    manager: PluginManager, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plugrad.toml").write_text('[kernels]\n"cpu.exp" = "moon"\n"cpu.sin" = "moon"\n')
    monkeypatch.setenv("PLUGRAD_KERNELS", "cpu.exp=sun, ")
    plugrad.config.reset()
    activate_backend(CpuBackend())
    assert values() == (42.0, 41.0)
    assert plugrad.config.setting("kernels.cpu.exp").source == "PLUGRAD_KERNELS in the environment"


@pytest.mark.parametrize(
    ("key", "package", "problem"),
    [
        ("cpu.exo", "moon", "there is no operator named 'exo'; did you mean 'exp'?"),
        (
            "cpu.exp",
            "moom",
            "'moom' is not an installed plugin or distribution; did you mean 'moon'?",
        ),
        ("cpu.exp", "x", r"distribution; those that provide kernels for 'cpu': "),
        ("cpu.cos", "moon", "plugrad-moon 1.0 has no kernel for 'cos' on backend 'cpu'; "),
        ("cpu.exp", "void", "plugrad-void 1.0 has no kernel for 'exp' on backend 'cpu'; "),
    ],
)
def test_a_choice_that_cannot_be_followed_is_refused_and_changes_nothing(
    cpu: ActiveBackend, key: str, package: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plugrad.config.set({f"kernels.{key}": package})
    assert problem in str(caught.value)
    assert f"plugrad.config.set(kernels.{key}={package!r}): " in str(caught.value)
    assert values() == (1.0, 0.0)
    with pytest.raises(ConfigError, match="nothing is set"):
        plugrad.config.get(f"kernels.{key}")


def test_a_disabled_package_cannot_be_chosen(cpu: ActiveBackend) -> None:
    with (
        plugrad.config.set(disable=["moon"]),
        pytest.raises(ConfigError, match=r"plugrad-moon 1\.0 is disabled by plugrad\.config\.set"),
    ):
        plugrad.config.set({"kernels.cpu.exp": "moon"})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"kernels": "moon"}, "'kernels' must be a table of '<kernels>"),
        ({"kernels": {"exp": "moon"}}, "'kernels.exp' must have the form"),
        ({"kernels.cpu.exp": 3}, "must be the name of a plugin or distribution"),
        ({"kernel.cpu.exp": "moon"}, "unknown key 'kernel.cpu.exp'"),
    ],
)
def test_what_is_no_choice_is_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plugrad.config.set(settings)
    assert problem.replace("<kernels>", "kernels.<backend>.<operator>'")[:30] in str(caught.value)


def test_a_variable_that_is_no_list_of_choices_is_refused(
    manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, problem in (
        ("cpu.exp", "must be a list such as"),
        ("exp=moon", "must have the form"),
    ):
        monkeypatch.setenv("PLUGRAD_KERNELS", text)
        plugrad.config.reset()
        with pytest.raises(ConfigError, match=f"PLUGRAD_KERNELS in the environment.*{problem}"):
            plugrad.config.get("prefer")
    monkeypatch.delenv("PLUGRAD_KERNELS")
    plugrad.config.reset()


def test_overrides_are_told_with_what_chose_them(
    cpu: ActiveBackend, manager: PluginManager
) -> None:
    with plugrad.config.set({"kernels.cpu.exp": "moon"}, prefer=["sun"]):
        plugrad.zeros(1).exp()
        texts = [conflict.text for conflict in manager.conflicts() if conflict.settled]
    assert texts == [
        "plugrad-moon 1.0's kernels for 'exp' on backend 'cpu' are used, not those of plugrad-sun "
        "2.0 and backend 'cpu': chosen by plugrad.config.set(kernels.cpu.exp='moon')",
        "plugrad-sun 2.0's kernels for 'sin', 'max' on backend 'cpu' are used, not those of "
        "backend 'cpu' and plugrad-moon 1.0: preferred by plugrad.config.set(prefer=['sun'])",
    ]
