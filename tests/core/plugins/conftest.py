"""A folder of fake distributions in place of all installed ones."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from plugrad import config
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    activate_backend,
    active_backends,
    deactivate_backend,
    find_backend,
)
from plugrad.plugins.loading import process
from plugrad.plugins.loading.manager import PluginManager
from plugrad_cpu.backend import CpuBackend

BACKEND_PLUGIN = """
    from plugrad.plugins import Backend, hookimpl

    class FakeBackend(Backend):
        def __init__(self):
            super().__init__({name!r}, array_type=list)

    @hookimpl
    def plugrad_backends():
        return [FakeBackend]
"""


class FakeSite:
    """Writes distributions that announce plugins, as pip would install them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        distribution: str,
        version: str,
        plugin: str,
        source: str,
        adds_to: str = "",
        target: str = "",
        requires: str = "",
    ) -> str:
        """A distribution with one plugin; its module has the given source. Returns its name.

        With `adds_to`, it announces kernels for the operators of that namespace; without a name
        for the plugin, nothing else. With `target`, its entry point names another module. With
        `requires`, it declares the releases of plugrad that it requires.
        """
        package = distribution.replace("-", "_")
        module = f"{package}.plugin"
        self.module(module, source)
        info = self.folder / f"{package}-{version}.dist-info"
        info.mkdir()
        metadata = f"Name: {distribution}\nVersion: {version}\n"
        metadata += f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(metadata)
        entries = f"[plugrad]\n{plugin} = {target or module}\n" if plugin else ""
        entries += f"[plugrad.kernels]\n{adds_to} = {module}\n" if adds_to else ""
        (info / "entry_points.txt").write_text(entries)
        return module

    def backend(self, name: str, version: str = "1.0") -> str:
        """A distribution plugrad-<name> that provides the backend of that name."""
        source = BACKEND_PLUGIN.format(name=name)
        return self.add(f"plugrad-{name}", version, name, source)

    def uninstall(self, name: str) -> None:
        """Remove what `backend` wrote."""
        for path in self.folder.glob(f"plugrad_{name}*"):
            shutil.rmtree(path)

    def module(self, name: str, source: str) -> None:
        """An importable module."""
        *packages, stem = name.split(".")
        folder = self.folder.joinpath(*packages)
        folder.mkdir(parents=True, exist_ok=True)
        for depth in range(1, len(packages) + 1):
            self.folder.joinpath(*packages[:depth], "__init__.py").touch()
        (folder / f"{stem}.py").write_text(dedent(source))


@pytest.fixture(scope="session", autouse=True)
def cpu_of_process() -> None:
    """Later, with nothing configured, it would have the kernels that the environment disables."""
    find_backend("cpu")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    # The real CPU backend names its dispatch key first; a fake called "cpu" would otherwise.
    find_backend("cpu")
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
        found = importlib.metadata.distributions(path=[str(folder)])
        return [entry for one in found for entry in one.entry_points if entry.group == group]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    with hidden_plugins():
        before = dict(sys.modules)
        yield FakeSite(folder)
        for name, module in list(sys.modules.items()):
            origin = str(getattr(module, "__file__", ""))
            if before.get(name) is not module and str(folder) in origin:
                del sys.modules[name]
        # Now rather than at the end, because the restored backends get their plugins' kernels from
        # the real manager. They also read the configuration, so plugins that the environment
        # disables stay disabled.
        monkeypatch.undo()
        config.reset()


@contextmanager
def hidden_plugins() -> Iterator[None]:
    """As if no real plugin had been loaded: neither its modules nor its backends."""
    hidden = {
        name: module
        for name, module in list(sys.modules.items())  # some import others on attribute access
        if str(getattr(module, "__name__", "")).startswith("plugrad_")
    }
    backends = [active.backend for active in active_backends()]
    for name in hidden:
        del sys.modules[name]
    for backend in backends:
        deactivate_backend(backend.name)
    yield
    sys.modules.update(hidden)
    for active in active_backends():
        deactivate_backend(active.name)
    for backend in backends:
        activate_backend(backend)


@pytest.fixture
def manager(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    """The process' plugin manager, seeing nothing but the fake site."""
    manager = PluginManager()
    monkeypatch.setattr(process, "_managers", [manager])
    return manager


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory and an environment that configure nothing."""
    folder = tmp_path / "project"
    folder.mkdir()
    for variable in [name for name in os.environ if name.startswith("PLUGRAD_")]:
        monkeypatch.delenv(variable)
    # Not by monkeypatch, which goes back last: the backends that come back read a configuration.
    with contextlib.chdir(folder):
        config.reset()
        yield folder
    config.reset()


@pytest.fixture
def cpu(manager: PluginManager) -> ActiveBackend:
    """The real CPU backend, active beside the fake plugins."""
    active = activate_backend(CpuBackend())
    manager.rescan()  # tests add distributions now
    return active
