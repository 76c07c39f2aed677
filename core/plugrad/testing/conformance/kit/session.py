"""The kit inside pytest: makes the tests, keeps count, and ends with the certificates."""

from __future__ import annotations

import gc
import random
import zlib
from collections.abc import Generator
from typing import Any, Final

import pytest

from plugrad.dispatch.backends.active import find_backend
from plugrad.errors import OperatorNotFoundError
from plugrad.plugins import get_manager
from plugrad.testing.cases import all_cases, cases_of
from plugrad.testing.conformance.kit.certificate import MISSING, Certificate, Outcome
from plugrad.testing.conformance.kit.matrix import (
    label_in,
    level_in,
    operator_in,
    reached_in,
    rows,
    value_in,
)
from plugrad.testing.conformance.kit.progress import Progress, make_progress
from plugrad.testing.conformance.kit.report import write_report
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.table import write_table
from plugrad.testing.conformance.kit.trials import Selection

PACKAGE: Final = "plugrad.testing.conformance"
PROPERTY: Final = "plugrad"
SEED: Final = "plugrad_seed"
WHOLE: Final = "plugrad_whole"
# Objects made. What compilers make is kept, and looking through it again and again, as often as
# Python does by itself, takes a twentieth of the kit's time.
BETWEEN_COLLECTIONS: Final = 50_000


def install(config: Any) -> None:
    """Install the kit in a run of pytest, according to the options."""
    option = config.option
    if not option.plugrad_backend and not option.plugrad_op:
        raise pytest.UsageError(
            f"{PACKAGE} tests a backend: say which, --plugrad-backend=NAME. Installed: "
            f"{', '.join(_usable_backends()) or 'none'}"
        )
    for path in option.plugrad_report:
        if not path.endswith((".json", ".html")):
            raise pytest.UsageError(f"--plugrad-report={path}: it must end in .json or .html")
    if not 0 < option.plugrad_share <= 1:
        raise pytest.UsageError(
            f"--plugrad-share={option.plugrad_share}: expected more than 0 and at most 1"
        )
    if option.plugrad_seed is None:
        # The processes of pytest-xdist choose the same.
        inherited = getattr(config, "workerinput", {}).get(SEED)
        option.plugrad_seed = random.randrange(100_000) if inherited is None else inherited
    names = [name for given in option.plugrad_backend for name in given.split(",")]
    try:
        subjects = [Subject(name) for name in names or _usable_backends()]
    except Exception as error:
        raise pytest.UsageError(f"--plugrad-backend: {error}") from error
    selection = Selection(
        option.plugrad_level,
        _expanded(option.plugrad_op),
        frozenset.intersection(*(subject.foreign for subject in subjects)) if subjects else (),
    )
    unknown = [name for name in selection.names if not cases_of(name)]
    if unknown:
        raise pytest.UsageError(
            f"--plugrad-op: there are no cases of {', '.join(unknown)}. The operator's "
            "plugin adds them by the hook plugrad_cases(), a test by "
            "plugrad.testing.cases.register()"
        )
    if selection.names and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [PACKAGE]
        option.pyargs = True
    config.pluginmanager.register(Kit(subjects, selection, option), "plugrad-kit")


class Kit:
    """The hooks that pytest calls during the run.

    Args:
        option: the options of the command line.
    """

    def __init__(self, subjects: list[Subject], selection: Selection, option: Any) -> None:
        self.subjects = subjects
        self.selection = selection
        self.reports: list[str] = list(option.plugrad_report)
        self.required: str = option.plugrad_level or ""
        self.share: float = option.plugrad_share
        self.seed: int = option.plugrad_seed
        self.certificates = {
            subject.name: Certificate.begin(subject, selection) for subject in subjects
        }
        self.whole = self.share == 1
        # With -v pytest names the tests itself.
        self.quiet = option.verbose <= 0
        self.progress: Progress | None = None
        self.terminal: Any = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass settings to a worker process of pytest-xdist."""
        node.workerinput[SEED] = self.seed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Record whether such a process left anything out."""
        said = getattr(node, "workeroutput", {})
        self.whole = self.whole and error is None and said.get(WHOLE, False)

    def pytest_report_header(self) -> list[str]:
        if self.share == 1:
            return []
        return [f"the kit: {self.share:.0%} of its tests, --plugrad-seed={self.seed}"]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test for each backend and row."""
        if "subject" not in metafunc.fixturenames or not _is_ours(metafunc.module):
            return
        given = vars(metafunc.function).get("plugrad_each")
        params = [
            pytest.param(*self._arguments(subject, row, given), id=_id(subject, row))
            for subject in self.subjects
            for row in rows(metafunc.function, subject, self.selection)
        ]
        names = ["subject", "plugrad_row"] + ([given[0]] if given else [])
        metafunc.fixturenames += [name for name in names if name not in metafunc.fixturenames]
        metafunc.parametrize(names, params)

    def _arguments(self, subject: Subject, row: Any, given: Any) -> tuple[Any, ...]:
        return (subject, row, value_in(row)) if given else (subject, row)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Store each test's subject on the test, where reports of worker processes include it."""
        # pytest makes placeholders where a backend has no case for a test.
        items[:] = [
            item
            for item in items
            if not ("plugrad_row" in _params(item) and item.name.endswith("[NOTSET]"))
        ]
        for item in items:
            params = _params(item)
            if "plugrad_row" not in params:
                continue
            row = params["plugrad_row"]
            about = {
                "backend": params["subject"].name,
                "topic": _topic(item),
                "operator": operator_in(row),
                "level": level_in(row),
                "reached": list(reached_in(row)),
            }
            item.user_properties.append((PROPERTY, about))
            # Kernels warn of nan and the like, and other runs make errors of warnings.
            item.add_marker(pytest.mark.filterwarnings("ignore"))
        if self.share < 1:
            left_out = [item for item in items if not self._is_chosen(item)]
            items[:] = [item for item in items if self._is_chosen(item)]
            self.pytest_deselected(left_out)

    def _is_chosen(self, item: Any) -> bool:
        if "plugrad_row" not in _params(item):
            return True
        return zlib.crc32(f"{self.seed} {item.nodeid}".encode()) < self.share * 2**32

    def pytest_collection(self, session: Any) -> None:
        """Print what is running before the first test."""
        self.terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if self.quiet and self.terminal is not None:
            self.terminal.write_line("Trying the samples on the CPU, which is compared with ...")

    def pytest_runtestloop(self, session: Any) -> None:
        """The tests begin; other processes' tests are unknown here."""
        if self.quiet and self.terminal is not None and not session.config.option.collectonly:
            self.terminal._show_progress_info = False
            self.progress = make_progress(len(session.items or ()), self.terminal.write_line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """No dots where there is a bar, or a line for each topic."""
        about = dict(getattr(report, "user_properties", ())).get(PROPERTY)
        if self.progress is None or about is None:
            return None
        if report.when != "call" and report.passed:
            return "", "", ""
        # The summary at the end has the word.
        return report.outcome, "", "FAILED" if report.failed else ""

    def pytest_collection_finish(self) -> None:
        """Leave the tests, and all that is imported, out of collections of garbage: a tenth of
        the kit's time. Once is enough where a test runs the kit."""
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
            gc.set_threshold(BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])

    def pytest_deselected(self, items: list[Any]) -> None:
        """A run in part certifies nothing."""
        self.whole = self.whole and not items

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        """An operator that the backend need not have, and has not, is not a failure."""
        try:
            return (yield)
        except OperatorNotFoundError as error:
            about = dict(item.user_properties).get(PROPERTY)
            if about is None or about["level"] == "core":
                raise
            pytest.skip(f"{MISSING}{error.primitive or about['operator']}")
        except NotImplementedError as error:
            about = dict(item.user_properties).get(PROPERTY)
            if about is not None and is_refused_by_a_plugin(about["operator"], error):
                pytest.skip(f"the kernel of {about['operator']} does not take the dtype")
            # What needs strides, and says so.
            if "has immutable arrays" not in str(error) or not _is_ours(item.module):
                raise
            pytest.skip("it cannot be done with immutable arrays")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test."""
        about = dict(report.user_properties).get(PROPERTY)
        if about is None or (report.when != "call" and report.passed):
            return
        result = "passed" if report.passed else "skipped" if report.skipped else "failed"
        if self.progress is not None:
            self.progress.step(about["topic"], result)
        certificate = self.certificates[about["backend"]]
        certificate.count(
            Outcome(
                report.nodeid,
                about["topic"],
                about["operator"],
                about["level"],
                tuple(about["reached"]),
                result,
                _reason(report),
                report.duration,
            )
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Decide, and write the reports; a level that was requested and not reached is an error."""
        if self.progress is not None:
            self.progress.end()
        interrupted = session.shouldstop or session.shouldfail or exitstatus not in (0, 1)
        whole = self.whole and not interrupted and not session.config.option.collectonly
        for certificate in self.certificates.values():
            certificate.decide(whole=whole)
        if hasattr(session.config, "workerinput"):
            session.config.workeroutput[WHOLE] = self.whole
            return
        if session.config.option.collectonly:
            return
        for path in self.reports:
            write_report(list(self.certificates.values()), path)
        if exitstatus == 0 and self.required and not self.selection.names:
            reached = all(found.certified(self.required) for found in self.certificates.values())
            if whole and not reached:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the certificates."""
        if terminalreporter.config.option.collectonly:
            return
        for problem in self.selection.problems:
            terminalreporter.write_line(f"not tried: {problem}", yellow=True)
        for certificate in self.certificates.values():
            write_table(certificate, terminalreporter)
        for path in self.reports:
            terminalreporter.write_line(f"The certificate is in {path}")


def _usable_backends() -> list[str]:
    """Every installed backend that can be activated and has a device."""
    names = []
    for name in get_manager().backends():
        try:
            find_backend(name).device(None)
        except Exception:
            continue  # `plugrad doctor` explains why
        names.append(name)
    return sorted(names)


def _expanded(names: list[str]) -> list[str]:
    """``special::*`` as all operators of that namespace that there are cases of."""
    found: dict[str, None] = {}
    for name in names:
        if name.endswith("::*"):
            prefix = name[:-1]
            some = [case.op for case in all_cases() if case.op.startswith(prefix)]
            found.update(dict.fromkeys(some or [name]))
        else:
            found[name] = None
    return list(found)


def _is_ours(module: Any) -> bool:
    return bool(module.__name__.startswith(PACKAGE))


def is_refused_by_a_plugin(operator: str, error: NotImplementedError) -> bool:
    """Whether a kernel that a plugin provides says that it does not take a dtype: no fault of the
    backend's."""
    namespace, mark, _ = operator.partition("::")
    return mark != "" and namespace != "plugrad" and " not implemented for '" in str(error)


def _params(item: Any) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else dict(callspec.params)


def _id(subject: Subject, row: Any) -> str:
    label = label_in(row)
    return f"{subject.name}-{label}" if label else subject.name


def _topic(item: Any) -> str:
    """ "values" for the tests of `test_values.py`."""
    name: str = item.module.__name__.rpartition(".")[2]
    return name.removeprefix("test_").replace("_", " ")


def _reason(report: Any) -> str:
    """Why a test failed or was skipped, in one line."""
    if report.passed:
        return ""
    if report.skipped:
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else str(crash.message)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:4])[:400]
