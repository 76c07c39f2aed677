"""Runs the kit inside a test, and says what it found."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from plugrad.plugins import Backend
from plugrad.testing.conformance.kit.certificate import Certificate
from plugrad.testing.conformance.kit.session import PACKAGE
from tests.core.backends.conftest import activated


@dataclass
class Run:
    """What became of a run.

    Attributes:
        code: pytest's exit code.
        nodes: which tests passed.
        failures: of tests, by name, with the reason.
        whole: whether no test was deselected.
    """

    code: int = -1
    passed: int = 0
    nodes: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    certificates: dict[str, Certificate] = field(default_factory=dict)

    def topics(self) -> set[str]:
        """The topics in which something failed."""
        return {
            outcome.topic
            for certificate in self.certificates.values()
            for outcome in certificate.failures()
        }


class Watcher:
    """Observes a run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.run.failures[report.nodeid.rpartition("::")[2]] = str(report.longrepr)
        elif report.when == "call" and report.passed:
            self.run.passed += 1
            self.run.nodes.add(report.nodeid)

    def pytest_sessionfinish(self, session: Any) -> None:
        kit = session.config.pluginmanager.get_plugin("plugrad-kit")
        if kit is not None:
            self.run.certificates = dict(kit.certificates)
            self.run.whole = kit.whole


def run_kit(*arguments: str, topics: tuple[str, ...] = ()) -> Run:
    """Run pytest with the kit's plugin, on some topics or on all."""
    modules = [f"{PACKAGE}.test_{topic.replace(' ', '_')}" for topic in topics] or [PACKAGE]
    if any(argument.startswith("--pyargs") for argument in arguments):
        modules = []
    options = ["-p", "plugrad_pytest", "-p", "no:cacheprovider", "-q", "-c", os.devnull]
    if "-n" in arguments:
        options += ["-p", "xdist.plugin"]
    run = Run()
    # pytest reads the list of files of every distribution otherwise, half a second each time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        run.code = int(
            pytest.main(
                [*options, "--tb=line", "--no-header", "--pyargs", *modules, *arguments],
                plugins=[Watcher(run)],
            )
        )
    return run


def run_kit_on(backend: Backend, *arguments: str, topics: tuple[str, ...] = ()) -> Run:
    """Run it on a backend that is active for as long."""
    with activated(backend) as name:
        return run_kit(f"--plugrad-backend={name}", *arguments, topics=topics)
