"""`plugrad ops`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.dispatch import keys
from plugrad.dispatch.operator import Operator, declare, retract
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import FakeSite

PLUGIN = """
    from plugrad.plugins import Backend, hookimpl

    class Alpha(Backend):
        def __init__(self):
            super().__init__("alpha", array_type=list)

        def kernels(self):
            return {"zz_twice": lambda x: x, "copy_": lambda x, y: x}

        def features(self, capability):
            return {"fins": False}

    @hookimpl
    def plugrad_backends():
        return [Alpha]
"""


CASES = """
    from plugrad.plugins import hookimpl
    from plugrad.testing.cases import OpCase, OpSample, T

    @hookimpl
    def plugrad_cases():
        return [OpCase("zz::zz_made", [OpSample((T((2,)),))])]
"""


@pytest.fixture(autouse=True)
def _operators(site: FakeSite) -> Iterator[None]:
    """An operator with a kernel, its in-place variant, one without, and a composite."""
    site.add("plugrad-alpha", "1.0", "alpha", PLUGIN)
    twice = "Tensor self) -> Tensor"
    made = [
        Operator("plugrad", "zz_twice", "", f"zz_twice({twice}", differentiable=True),
        Operator("plugrad", "zz_twice_", "", "zz_twice_(Tensor(a!) self) -> Tensor(a!)"),
        Operator("plugrad", "zz_hard", "Tensor", f"zz_hard.Tensor({twice}"),
        Operator("plugrad", "zz_easy", "", f"zz_easy({twice}", differentiable=True),
        Operator("zz", "zz_mine", "", f"zz::zz_mine({twice}"),
    ]
    for op in made:
        declare(op)
    made[2].level = "core"
    made[3].register(keys.COMPOSITE_IMPLICIT_AUTOGRAD, lambda keyset, x: x)
    yield
    for op in made:
        retract(op)


def listed(run: Run, *arguments: str) -> dict[str, dict[str, Any]]:
    result = run("ops", "zz_", "--json", *arguments)
    assert result.exit_code == 0
    return {report["name"]: report for report in json.loads(result.stdout)}


def test_operators_are_listed_with_schema_and_gradient(run: Run) -> None:
    report = listed(run)["zz_hard.Tensor"]
    assert report["schema"] == "zz_hard.Tensor(Tensor self) -> Tensor"
    assert report["differentiable"] is False


def test_an_operator_of_another_namespace_is_named_with_it(run: Run) -> None:
    assert "zz::zz_mine" in listed(run)


def test_kinds_of_kernels_are_told_apart(run: Run) -> None:
    kinds = {name: report["backends"]["alpha"] for name, report in listed(run).items()}
    assert kinds == {
        "zz::zz_mine": "missing",
        "zz_easy": "decomposed",
        "zz_hard.Tensor": "missing",
        "zz_twice": "native",
        "zz_twice_": "derived",
    }


def test_what_is_missing_is_named(run: Run, site: FakeSite) -> None:
    site.backend("beta")
    reports = listed(run, "--backend", "beta")
    assert reports["zz_twice_"]["missing"] == {"beta": ["copy_", "zz_twice"]}
    assert reports["zz_hard.Tensor"]["missing"] == {"beta": ["zz_hard.Tensor"]}
    assert reports["zz_easy"]["missing"] == {}
    assert "missing: copy_, zz_twice" in run("ops", "zz_twice*", "--backend", "beta").stdout


@pytest.mark.usefixtures("cpu")
def test_decompositions_of_plugins_are_looked_into(run: Run, site: FakeSite) -> None:
    site.add("plugrad-gamma", "1.0", "gamma", CASES)
    made = declare(Operator("zz", "zz_made", "", "zz::zz_made(Tensor self) -> Tensor"))
    made.register(keys.COMPOSITE_IMPLICIT_AUTOGRAD, lambda keyset, x: plugrad.exp(x))
    try:
        report = listed(run, "--backend", "alpha")["zz::zz_made"]
    finally:
        retract(made)
    assert report["needs"] == ["exp"]
    assert report["missing"] == {"alpha": ["exp"]}


def test_primitives_are_neither_composite_nor_inplace_variants(run: Run) -> None:
    assert list(listed(run, "--primitives")) == ["zz::zz_mine", "zz_hard.Tensor", "zz_twice"]


def test_one_backend_can_be_asked_for(run: Run, site: FakeSite) -> None:
    site.backend("beta")
    assert set(listed(run)["zz_twice"]["backends"]) == {"alpha", "beta"}
    assert set(listed(run, "--backend", "beta")["zz_twice"]["backends"]) == {"beta"}


def test_filter_is_part_of_the_name(run: Run) -> None:
    result = run("ops", "zz_tw", "--json")
    assert [report["name"] for report in json.loads(result.stdout)] == ["zz_twice", "zz_twice_"]


def test_table_shows_the_schema_as_it_is(run: Run) -> None:
    text = run("ops", "zz_twice*").stdout
    assert "zz_twice_(Tensor(a!) self) -> Tensor(a!)" in text
    assert "2 operators, 1 of them primitive; alpha: 1 derived, 1 native." in text


@pytest.mark.parametrize(("width", "columns"), [(80, 1), (160, 2)])
def test_in_a_narrow_terminal_the_schema_takes_the_place_of_the_name(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("ops", "zz_twice*", "--backend", "alpha").stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert ("schema" in lines[1]) == (columns == 2)
    (first,) = [line for line in lines if "zz_twice(" in line]
    assert first.count("zz_twice") == columns
    assert "native" in first


def test_in_a_narrow_terminal_many_backends_share_a_column(
    run: Run, site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("one", "two", "three"):
        site.backend(name)
    output = run("ops", "zz_twice*").stdout
    assert max(map(len, output.splitlines()[:-1])) <= 80
    assert "native: alpha; missing:" in output


def test_filter_that_matches_nothing_is_an_error(run: Run) -> None:
    result = run("ops", "no_such_operator")
    assert result.exit_code == 1
    assert "no operator's name contains 'no_such_operator'" in result.stderr


def test_unknown_backend_is_explained(run: Run) -> None:
    result = run("ops", "--backend", "nope")
    assert result.exit_code == 2
    assert "No backend named 'nope' is installed." in result.stderr


def test_operators_are_listed_by_level(run: Run) -> None:
    assert listed(run)["zz_hard.Tensor"]["level"] == "core"
    assert list(listed(run, "--level", "core")) == ["zz_hard.Tensor"]
    assert "zz_twice" in listed(run, "--level", "full")


def test_a_level_that_is_none_is_an_error(run: Run) -> None:
    result = run("ops", "--level", "middle")
    assert result.exit_code == 2
    assert "--level must be core or full, got 'middle'" in result.stderr


KERNELS = """
    from plugrad.plugins import hookimpl

    @hookimpl
    def plugrad_kernels():
        return {"alpha": {"zz_twice": lambda x: NotImplemented, "zz::zz_mine": lambda x: x}}
"""


@pytest.mark.parametrize("width", [80, 160])
def test_whose_kernels_run_is_told(
    run: Run, site: FakeSite, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    site.add("plugrad-swift", "2.0", "swift", KERNELS)
    reports = listed(run)
    assert reports["zz_twice"]["kernels"] == {"alpha": ["plugrad-alpha 1.0"]}
    assert reports["zz::zz_mine"]["kernels"] == {"alpha": ["plugrad-swift 2.0"]}
    assert reports["zz_easy"]["kernels"] == {"alpha": []}
    with plugrad.config.set({"kernels.alpha.zz_twice": "swift"}):
        report = listed(run)["zz_twice"]
        lines = run("ops", "zz_twice*", "--backend", "alpha").stdout.splitlines()
        site.backend("beta")
        both = run("ops", "zz_twice*").stdout
    assert report["kernels"] == {"alpha": ["plugrad-swift 2.0", "plugrad-alpha 1.0"]}
    assert report["foreign"] == ["alpha"]
    assert "kernel of" in lines[1]
    (first,) = [line for line in lines if "zz_twice(" in line]
    assert "plugrad-swi" in first
    # It may decline, and then the backend's own kernel is tried.
    assert "plugrad-alpha" in "".join(lines).replace(" ", "")
    assert max(map(len, lines)) <= width
    assert "alpha: plugrad-swift" in " ".join(both.split()) or "plugrad-swift" in both


def test_a_whole_name_shows_the_operator(run: Run) -> None:
    text = run("ops", "relu").stdout
    assert text.startswith("relu(Tensor self) -> Tensor\nmax(x, 0).")
    assert "  self          threshold_gradient(grad, result, 0)\n" in text
    assert "  forward mode  the derivative times the tangent\n" in text
    assert "Kernels (level core)\n  alpha  " in text
    assert ">>> plugrad.relu(" in text
    assert "Other operators: leaky_relu, leaky_relu_, " in text
    assert "`plugrad ops '*relu*'` lists them." in text


def test_overloads_are_shown_one_after_the_other(run: Run) -> None:
    text = run("ops", "add").stdout
    assert "add.Tensor(Tensor self, Tensor other" in text
    assert "add.Scalar(Tensor self, Scalar other" in text
    assert "  other         scaled(grad, alpha)\n" in text
    assert run("ops", "add.Scalar").stdout.count("Kernels") == 1


def test_the_gradient_of_a_decomposition_is_that_of_its_parts(run: Run) -> None:
    text = run("ops", "relu6").stdout
    assert "derived from the operators in its decomposition" in text
    assert "Source: Krizhevsky" in text


def test_derivatives_of_an_operator_are_in_the_json(run: Run) -> None:
    (report,) = json.loads(run("ops", "relu", "--json").stdout)
    assert report["derivatives"] == {"self": "threshold_gradient(grad, result, 0)"}
    listed = {one["name"]: one for one in json.loads(run("ops", "relu*", "--json").stdout)}
    assert listed["relu6"]["derivatives"] == {}


@pytest.mark.parametrize(
    ("name", "selected"),
    [
        ("zz_hard", ["zz_hard.Tensor"]),
        ("zz_hard.Tensor", ["zz_hard.Tensor"]),
        ("zz_mine", ["zz::zz_mine"]),
        ("zz_twice", ["zz_twice"]),
        ("zz_twice*", ["zz_twice", "zz_twice_"]),
        ("zz_twi", ["zz_twice", "zz_twice_"]),
    ],
)
def test_json_selects_what_the_text_shows(run: Run, name: str, selected: list[str]) -> None:
    reports = json.loads(run("ops", name, "--json").stdout)
    assert [report["name"] for report in reports] == selected
    text = run("ops", name).stdout.partition("Other operators:")[0]
    schemas = [report["schema"] for report in json.loads(run("ops", "zz_", "--json").stdout)]
    shown = [schema for schema in schemas if schema in text]
    assert shown == [report["schema"] for report in reports]


def test_whose_kernels_compute_an_operator_is_shown_in_their_order(
    run: Run, site: FakeSite
) -> None:
    site.add("plugrad-swift", "2.0", "swift", VARIANTS)
    lines = run("ops", "zz_twice").stdout.splitlines()
    place = lines.index("  alpha  plugrad-swift 2.0: wide (from 10 elements)")
    assert lines[place + 1] == "         plugrad-alpha 1.0"


def test_a_table_in_a_pipe_has_a_line_for_each_operator(run: Run) -> None:
    lines = run("ops", "conv*").stdout.splitlines()
    shown = [line for line in lines if "->" in line]
    assert all(line.split()[0].startswith("conv") for line in shown)
    assert max(map(len, shown)) > 200
    assert all(line == line.rstrip() for line in lines)


def test_a_misspelt_operator_names_the_nearest_one(run: Run) -> None:
    assert "did you mean 'softplus'?" in run("ops", "soft_plus").stderr


VARIANTS = """
    from plugrad.plugins import Variant, hookimpl

    @hookimpl
    def plugrad_variants():
        return {"alpha": [Variant("zz_twice", lambda x: x, name="wide", least=10)]}
"""


def test_variants_of_a_kernel_are_told(
    run: Run, site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    site.add("plugrad-swift", "2.0", "swift", VARIANTS)
    report = listed(run)["zz_twice"]
    assert report["variants"] == {"alpha": ["plugrad-swift 2.0: wide (from 10 elements)"]}
    assert report["kernels"] == {"alpha": ["plugrad-alpha 1.0"]}
    assert report["foreign"] == []
    assert listed(run)["zz_easy"]["variants"] == {}
    shown = " ".join(run("ops", "zz_twice*", "--backend", "alpha").stdout.split())
    assert "plugrad-swi" in shown
    assert "(wide)" in shown


UNUSABLE = """
    from plugrad.plugins import Variant, hookimpl

    def missing():
        return "libswift is not installed: pip install libswift"

    @hookimpl
    def plugrad_variants():
        return {"alpha": [
            Variant("zz_twice", abs, name="fins", features=["fins"], dtypes=["float32"]),
            Variant("zz_twice", abs, name="lib", problem=missing),
            Variant("zz_twice", abs, name="wide"),
        ]}
"""


def test_variants_that_cannot_be_used_are_shown_with_the_reason(run: Run, site: FakeSite) -> None:
    site.add("plugrad-swift", "2.0", "swift", UNUSABLE)
    needs_fins = "it needs fins, which is not here"
    no_library = "libswift is not installed: pip install libswift"
    report = listed(run, "--backend", "alpha")["zz_twice"]
    assert report["unused"] == {}  # not requested by its name
    lines = run("ops", "zz_twice", "--backend", "alpha").stdout.splitlines()
    place = lines.index("  alpha  plugrad-swift 2.0: wide")
    assert lines[place + 1 : place + 4] == [
        "         plugrad-alpha 1.0",
        f"         not used: plugrad-swift 2.0: fins (fins, float32): {needs_fins}",
        f"         not used: plugrad-swift 2.0: lib: {no_library}",
    ]
    (one, *_) = json.loads(run("ops", "zz_twice", "--json", "--backend", "alpha").stdout)
    assert one["unused"] == {
        "alpha": {
            "plugrad-swift 2.0: fins (fins, float32)": needs_fins,
            "plugrad-swift 2.0: lib": no_library,
        }
    }
