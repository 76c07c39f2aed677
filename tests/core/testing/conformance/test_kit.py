"""The kit's options, certificates and reports, and its results for incomplete backends."""

from __future__ import annotations

import html.parser
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.testing.cases import OpCase, calls, register
from plugrad.testing.cases import T as Random
from plugrad.testing.conformance.kit.certificate import TOPICS, Certificate, Count
from plugrad.testing.conformance.kit.derivatives import first
from plugrad.testing.conformance.kit.progress import make_progress
from plugrad.testing.conformance.kit.session import PACKAGE, install
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection
from plugrad.testing.conformance.kit.variations import in_place_variants, written
from tests.core.testing.conformance.broken_backends import SoundBackend, with_kernel
from tests.core.testing.conformance.runs import run_kit, run_kit_on

# Operators of the core with values that differ from call to call.
DRAWN_OR_UNSPECIFIED = {
    "bernoulli", "bernoulli_", "dropout", "dropout_", "empty_like", "exponential_", "multinomial",
    "native_dropout", "native_dropout_backward", "normal", "normal_",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "random_", "randperm",
    "uniform_",
}  # fmt: skip
# Called by moves between devices, which the topic of conversions is about.
MOVES = {"_to_device"}


def slightly_wrong(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: kernel(*args) * 1.001


class WithoutBackend(SoundBackend):
    """Lacks some kernels."""

    def __init__(self, *missing: str) -> None:
        super().__init__("partial")
        self.missing = missing

    def kernels(self) -> dict[str, Callable[..., Any]]:
        table = super().kernels()
        return {key: raw for key, raw in table.items() if key.partition(".")[0] not in self.missing}


@pytest.mark.long
@pytest.mark.parametrize("level", ["core", "full"])
def test_the_cpu_is_certified(level: str) -> None:
    """`make packages` certifies it too, as it is installed."""
    run = run_kit("--plugrad-backend=cpu", f"--plugrad-level={level}")
    assert run.failures == {}
    assert run.code == 0
    assert run.certificates["cpu"].verdict(level) == "certified"
    assert run.passed > 10_000


def test_there_is_a_module_for_every_topic() -> None:
    from plugrad.testing import conformance

    folder = Path(conformance.__file__).parent
    modules = {path.stem.removeprefix("test_") for path in folder.glob("test_*.py")}
    assert modules - {"selected_operators"} == {topic.replace(" ", "_") for topic in TOPICS}


def test_a_run_in_part_certifies_nothing() -> None:
    run = run_kit("--plugrad-backend=cpu", topics=("printing",))
    assert run.code == 0
    assert run.certificates["cpu"].verdict("core") == "not certified: not all tests were run"


def test_deselecting_certifies_nothing() -> None:
    run = run_kit("--plugrad-backend=cpu", "-k", "not test_repr", topics=("printing",))
    assert run.passed == 2
    certificate = run.certificates["cpu"]
    certificate.topics = dict.fromkeys(TOPICS, Count())
    certificate.decide(whole=run.whole)
    assert not certificate.whole


def test_a_share_is_chosen_by_its_seed_and_certifies_nothing() -> None:
    everything = "--plugrad-backend=cpu", "--plugrad-op=exp", "--plugrad-op=sum"
    all_of_it = run_kit(*everything, topics=("values",))
    quarter = (*everything, "--plugrad-share=0.25")
    first, again, other = (
        run_kit(*quarter, f"--plugrad-seed={seed}", topics=("values",)) for seed in (1, 1, 2)
    )
    assert 0 < first.passed < all_of_it.passed / 2
    assert first.nodes == again.nodes != other.nodes
    assert all_of_it.whole
    assert not first.whole


def test_a_share_is_the_same_in_every_process() -> None:
    """The requirements of pytest-xdist on plugins."""
    said: dict[str, Any] = {}
    option = SimpleNamespace(
        plugrad_backend=["cpu"], plugrad_op=[], plugrad_report=[], plugrad_level=None,
        plugrad_share=0.5, plugrad_seed=None, verbose=0,
    )  # fmt: skip
    manager = pytest.PytestPluginManager()
    install(SimpleNamespace(option=option, pluginmanager=manager))
    manager.get_plugin("plugrad-kit").pytest_configure_node(SimpleNamespace(workerinput=said))
    chosen, option.plugrad_seed = option.plugrad_seed, None
    other = pytest.PytestPluginManager()
    install(SimpleNamespace(option=option, pluginmanager=other, workerinput=said))
    assert option.plugrad_seed == chosen


@pytest.mark.parametrize(
    "left_out", [(), ("--plugrad-share=0.5",), ("-k", "not test_repr")], ids=" ".join
)
def test_other_processes_say_what_they_left_out(left_out: tuple[str, ...]) -> None:
    """A partial run fails no requested level, and certifies none."""
    run = run_kit(
        "--plugrad-backend=cpu", "--plugrad-level=core", "-n", "1", *left_out,
        topics=("printing",),
    )  # fmt: skip
    assert run.passed > 0
    assert run.whole == (not left_out)
    assert run.code == (1 if run.whole else 0), "all of it, and not all topics"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--plugrad-backend=cpu", "--plugrad-share=25"), "expected more than 0 and at most 1"),
        (("--pyargs", PACKAGE), "say which, --plugrad-backend=NAME. Installed: .*cpu"),
        (("--plugrad-backend=nowhere",), "No backend named 'nowhere'"),
        (("--plugrad-op=no_such_operator",), "there are no cases of no_such_operator"),
        (("--plugrad-backend=cpu", "--plugrad-report=x.pdf"), "must end in .json or .html"),
        (("--plugrad-level=core",), "need --plugrad-backend=NAME or --plugrad-op"),
    ],
)
def test_options_that_make_no_sense(
    arguments: tuple[str, ...], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["-p", "plugrad_pytest", "-p", "no:cacheprovider", "-c", "/dev/null", *arguments]
    assert pytest.main(options) == pytest.ExitCode.USAGE_ERROR
    from re import search

    assert search(words, capfd.readouterr().err)


def test_a_missing_operator_of_the_core_is_one_failure() -> None:
    """And not one for every test that would have called it."""
    run = run_kit_on(
        WithoutBackend("sin", "sin_"), "--plugrad-op=sin", topics=("operators", "values")
    )
    assert list(run.failures) == ["test_operator_of_the_core_is_available[partial-sin]"]
    certificate = run.certificates["partial"]
    assert "plugrad::sin" in certificate.missing("core")
    assert certificate.operators["plugrad::sin"].kind == "missing"


def test_a_missing_operator_of_the_full_level_is_listed() -> None:
    backend = WithoutBackend("view_as_real")
    run = run_kit_on(backend, "--plugrad-op=view_as_real", topics=("operators", "values"))
    assert run.failures == {}
    certificate = run.certificates["partial"]
    assert "plugrad::view_as_real" in certificate.missing("full")
    assert certificate.missing("core") == []
    certificate.whole = True  # as if it were all of the kit
    assert certificate.verdict("core") == "certified"
    # The others are composed of it.
    made_of_it = ["plugrad::real", "plugrad::stft.center", "plugrad::view_as_real_copy"]
    assert certificate.missing("full") == sorted([*made_of_it, "plugrad::view_as_real"])
    assert certificate.verdict("full") == "not certified: 4 operators are missing"


def test_random_numbers_and_dlpack_may_be_lacking() -> None:
    class Plain(SoundBackend):
        def make_generator(self, index: int) -> Any:
            raise NotImplementedError(f"backend {self.name!r} has no random generator")

    run = run_kit_on(Plain("plain"), topics=("generators", "dlpack"))
    assert run.failures == {}
    skips = run.certificates["plain"].skips()
    assert "the backend has no random generator" in skips
    assert "the backend has no capability 'dlpack'" in skips


@pytest.fixture
def reports(tmp_path: Path) -> tuple[dict[str, Any], str]:
    """The JSON and the HTML of a backend with a wrong kernel."""
    paths = [tmp_path / "made" / "report.json", tmp_path / "made" / "report.html"]
    run_kit_on(
        with_kernel("exp", slightly_wrong),
        "--plugrad-op=exp",
        "--plugrad-op=sin",
        *(f"--plugrad-report={path}" for path in paths),
        topics=("values",),
    )
    return json.loads(paths[0].read_text()), paths[1].read_text()


def test_the_json_report(reports: tuple[dict[str, Any], str]) -> None:
    found, _ = reports
    assert found["format"] == 1
    assert found["backend"] == "broken"
    assert found["plugrad"] == plugrad.__version__
    assert found["devices"] == ["broken:0", "broken:1"]
    assert "float64" in found["dtypes"]
    assert "mutable" in found["capabilities"]
    assert found["selected_operators"] == ["exp", "sin"]
    assert not found["complete"]
    assert not found["levels"]["core"]["certified"]
    operators = {operator["name"]: operator for operator in found["operators"]}
    assert operators["plugrad::exp"]["failed"] > 0
    assert operators["plugrad::exp"]["kind"] == "native"
    assert operators["plugrad::sin"]["failed"] == 0
    assert operators["plugrad::sin"]["passed"] > 0
    failed = sum(operator["failed"] for operator in found["operators"])
    assert len(found["failures"]) == failed == found["topics"]["values"]["failed"]
    assert all("exp" in failure["test"] for failure in found["failures"])
    assert "Not equal to tolerance" in found["failures"][0]["reason"]


class Checker(html.parser.HTMLParser):
    """Notes what a page loads from elsewhere, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_report_needs_nothing_else(reports: tuple[dict[str, Any], str]) -> None:
    found, page = reports
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loaded == []
    assert "<script>" in page
    for text in ("plugrad::exp", "float64", "not all tests were run", "Not equal to tolerance"):
        assert text in checker.text
    assert found["failures"][0]["reason"] in checker.text


def test_several_backends_have_a_certificate_each(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    from plugrad.dispatch.backends.active import activate_backend, deactivate_backend

    activate_backend(SoundBackend())
    try:
        run = run_kit(
            "--plugrad-backend=cpu,sound", f"--plugrad-report={path}", topics=("printing",)
        )
    finally:
        deactivate_backend("sound")
    assert set(run.certificates) == {"cpu", "sound"}
    assert [report["backend"] for report in json.loads(path.read_text())] == ["cpu", "sound"]


def double(x: Any) -> Any:
    return x * 2


@pytest.fixture
def doubling() -> Iterator[str]:
    """An operator of another namespace, with cases."""
    library = plugrad.library.Library("toolbox", "DEF")
    library.define("double(Tensor self) -> Tensor")
    library.impl("double", double, "CompositeImplicitAutograd")
    remove = register(
        OpCase("toolbox::double", calls((Random((2, 3)),), (Random(()),)), dtypes=("float32",))
    )
    yield "toolbox::double"
    remove()
    library._destroy()


def test_an_operator_of_ones_own_gets_the_same_treatment(doubling: str) -> None:
    run = run_kit("--plugrad-backend=cpu", f"--plugrad-op={doubling}")
    assert run.failures == {}
    topics = run.certificates["cpu"].topics
    wanted = {
        "values", "gradients", "double gradients", "forward mode", "layouts", "memory",
        "selected operators",
    }  # fmt: skip
    assert wanted <= set(topics)
    assert run.certificates["cpu"].operators[doubling].count.passed == run.passed


def test_an_operator_runs_on_every_installed_backend_if_none_is_named(doubling: str) -> None:
    run = run_kit(f"--plugrad-op={doubling}", topics=("values",))
    assert "cpu" in run.certificates
    assert run.failures == {}
    assert run.passed >= 3


def test_the_plugin_costs_other_runs_nothing(tmp_path: Path) -> None:
    """It is loaded wherever plugrad is installed; plugrad itself is not imported."""
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_modules():\n"
        "    assert not [m for m in sys.modules if m.partition('.')[0] in ('plugrad', 'numpy')]\n"
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "plugrad_pytest", "-c", "/dev/null"],
        cwd=tmp_path,
        check=True,
    )


def test_every_operator_of_the_core_is_tried() -> None:
    """By samples of its own, within others, in backward, or in the topic of generators."""
    subject, selection = Subject("cpu"), Selection()
    tried: set[str] = set()
    for trial in selection.trials_on(subject):
        tried.update(trial.reached)
        if trial.case.gradient and trial.has_leaf:
            with plugrad.record_dispatch_trace() as events:
                first(trial, trial.arguments(subject))
            tried.update(event.op for event in events)
    for trial, name in in_place_variants(subject, selection):
        with plugrad.no_grad(), plugrad.record_dispatch_trace() as events:
            written(trial, name, trial.arguments(subject, overlapping=False))
        tried.update(event.op for event in events)
    untried = {
        op.name
        for op in all_operators()
        if op.level == "core" and op.namespace == "plugrad" and op.qualified_name not in tried
    }
    assert untried == DRAWN_OR_UNSPECIFIED | MOVES


def test_what_a_plugins_kernel_refuses_is_no_fault_of_the_backend() -> None:
    from plugrad.testing.conformance.kit.session import is_refused_by_a_plugin

    refused = NotImplementedError("\"gamma\" not implemented for 'ComplexFloat'")
    assert is_refused_by_a_plugin("special::gamma", refused)
    assert not is_refused_by_a_plugin("plugrad::exp", refused)
    assert not is_refused_by_a_plugin("special::gamma", NotImplementedError("no such kernel"))


class Hoarder:
    """What a kernel leaves behind."""


def test_what_a_step_leaves_behind_is_named_by_its_type() -> None:
    kept: list[Hoarder] = []

    def hoarding(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def hoard(*args: Any) -> Any:
            kept.append(Hoarder())
            return kernel(*args)

        return hoard

    run = run_kit_on(with_kernel("relu", hoarding), "-k", "repeated_steps_keep", topics=("memory",))
    (failure,) = run.failures.values()
    assert "by type: tests.core.testing.conformance.test_kit.Hoarder (20)" in failure


def test_what_keeps_a_result_is_named() -> None:
    kept: list[Any] = []

    def remembering(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def remember(*args: Any) -> Any:
            kept.append(kernel(*args))
            return kept[-1]

        return remember

    options = ("--plugrad-op=exp", "-k", "freed")
    run = run_kit_on(with_kernel("exp", remembering), *options, topics=("memory",))
    (failure,) = run.failures.values()
    assert "1 references to a result, of type " in failure
    assert "they are in objects of the types list (1)" in failure


def test_operators_of_other_plugins_are_not_counted() -> None:
    subject = Subject("cpu")
    assert "special" in subject.foreign
    whole = Selection(None, (), subject.foreign)
    assert not [case.op for case in whole.cases if case.op.startswith("special::")]
    counted = Certificate.begin(subject, whole).operators
    assert not [name for name in counted if name.startswith("special::")]
    assert "plugrad::exp" in counted
    run = run_kit(
        "--plugrad-backend=cpu", "--plugrad-op=special::*", "-k", "erf", topics=("values",)
    )
    assert run.failures == {}
    tried = [
        name for name, record in run.certificates["cpu"].operators.items() if record.count.total
    ]
    assert tried
    assert all(name.startswith("special::") for name in tried)


def test_progress_is_a_line_for_each_topic_where_there_is_no_terminal() -> None:
    lines: list[str] = []
    progress = make_progress(3, lines.append)
    for topic, result in (("values", "passed"), ("values", "failed"), ("views", "skipped")):
        progress.step(topic, result)
    progress.end()
    assert [line.rpartition(" in ")[0] for line in lines] == [
        "values: 1 passed, 1 failed",
        "views: 1 skipped",
    ]


@pytest.mark.parametrize("installed", ["rich", "tqdm"])
def test_progress_is_a_bar_on_a_terminal(
    installed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in ("rich", "tqdm") and name != installed else find(name),
    )
    progress = make_progress(2, print)
    progress.step("values", "passed")
    progress.step("values", "failed")
    progress.end()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err
