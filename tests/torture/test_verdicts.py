"""What the families take for evidence: not ties and kinks, nor what memory decides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test ORACLE=torch")

import plugrad  # noqa: E402  # after the check
from plugrad.testing.random_programs import Program, difference, run_program  # noqa: E402
from tests.torture import specs  # noqa: E402
from tests.torture.families import operators  # noqa: E402
from tests.torture.messages import internal  # noqa: E402
from tests.torture.programs.finite_differences import verdict  # noqa: E402
from tests.torture.programs.noise import Noise  # noqa: E402
from tests.torture.programs.verdicts import (  # noqa: E402
    Parted,
    first_other_layout,
    hides_a_write,
    only_layout_decides,
    only_pytorch_keeps,
)

LEAF = "v1 = leaf((2, 2), 'float64', 3, True)\n"
BACKWARD = "\nlib.autograd.backward([w2], [values((2, 2), 'float64', 5)])"


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        ("w2 = v1.sin() * v1.exp()", False),
        ("w2 = (v1 - v1.detach()).kthvalue(1, 0)[0].expand(2, 2)", True),
        ("w2 = v1.detach().sub(v1.detach()).sign() * v1", True),
    ],
)
def test_noise_changes_what_ties_and_kinks_decide(text: str, decides: bool) -> None:
    program = Program.parse(LEAF + text + BACKWARD)
    with Noise(1) as noise:
        moved = run_program(program, torch)
    assert (difference(moved, run_program(program, torch)) is not None) is decides
    assert not noise.overlaps


def test_noise_changes_a_shape_that_rounding_decides() -> None:
    program = Program.parse(LEAF + "w2 = v1[(v1 - v1.detach() * 1) > 0]")
    with Noise(1):
        moved = run_program(program, torch)
    assert difference(moved, run_program(program, torch), tolerance=math.inf) is not None


def test_writes_to_elements_that_are_one_in_memory_are_noticed() -> None:
    program = Program.parse(
        LEAF + "v2 = v1.detach().expand(2, 2, 2)\nv2.index_fill_(0, lib.tensor([0]), 0.5)"
    )
    with Noise(1) as noise:
        run_program(program, torch)
    assert noise.overlaps


@pytest.mark.parametrize("leaf", [LEAF, LEAF.replace("float64", "complex128")])
@pytest.mark.parametrize("change", [0.5, 1 + 3e-8])
def test_finite_differences_tell_who_is_wrong(leaf: str, change: float) -> None:
    program = Program.parse(leaf + "w2 = (v1 * v1).exp().abs()" + BACKWARD)

    def wrong() -> Any:
        variables = run_program(program, torch)[1]
        kind, flag, values = variables["v1"]["grad"]
        variables["v1"]["grad"] = (kind, flag, values * change)
        return variables

    right = run_program(program, torch)[1]
    assert verdict(program, right, wrong()) == "ours"
    assert verdict(program, wrong(), right) == "PyTorch"


@pytest.mark.parametrize("text", ["w2 = (v1 - v1.detach()).abs()", "w2 = v1.detach() * v1"])
def test_finite_differences_say_where_they_cannot_tell(text: str) -> None:
    program = Program.parse(LEAF + text + BACKWARD)
    first, second = (run_program(program, torch)[1] for _ in range(2))
    kind, flag, values = second["v1"]["grad"]
    second["v1"]["grad"] = (kind, flag, values + 1)
    assert verdict(program, first, second) == "cannot tell"


def call(op: str, *args: Any) -> operators.Call:
    case = next(case for case in operators._cases() if case.op == op)
    return operators.Call(op, case.torch or op, "function", args, {}, None, False, case)


def test_arguments_move_by_roundings_and_equal_elements_part() -> None:
    values = np.array([[2.0, 0.0], [2.0, 0.0]])
    tensor = specs.Tensor(values, "float32", "expanded")
    moved = specs.moved([tensor], 1)[0]
    assert np.allclose(moved.values, values, rtol=1e-6)
    assert moved.values[0, 0] != moved.values[1, 0]
    assert (moved.values[:, 1] == 0).all()
    unstable = call("kthvalue", specs.Tensor(np.ones(3), "float64"), 2)
    assert operators.is_unstable(unstable, operators.perform(unstable, torch))
    stable = call("kthvalue", specs.Tensor(np.arange(3.0), "float64"), 2)
    assert not operators.is_unstable(stable, operators.perform(stable, torch))


def test_results_that_pytorch_leaves_broken_count_as_errors() -> None:
    broken = call("as_strided", specs.Tensor(np.ones(4), "float64"), (-1, 0), (2, 2))
    ours, theirs = operators.perform(broken, plugrad), operators.perform(broken, torch)
    assert operators.compare(broken, ours, theirs) is None


def parted(text: str) -> Parted:
    program = Program.parse(LEAF + text + BACKWARD)
    found = difference(run_program(program, plugrad), run_program(program, torch), words=False)
    return Parted(program, found or "", numeric="but theirs" in (found or ""))


def test_what_a_node_keeps_is_known_where_the_gradient_is_right() -> None:
    written = "v3 = v1 * 1\nw2 = v3.gather(0, lib.zeros((2, 2), dtype=lib.int64))\n"
    needless = parted(written + "v3.detach().zero_()")
    assert "only theirs" in needless.text
    assert only_pytorch_keeps(needless)
    assert not only_pytorch_keeps(replace(needless, text=needless.text.replace("modified", "")))
    # The same error if plugrad's gradient is correct for the present values.
    wrong = parted("v3 = v1 * 1\nw2 = v3 * v3\nv3.data.zero_()")
    text = "only theirs: has been modified by an inplace operation"
    assert not only_pytorch_keeps(replace(wrong, text=text))


def test_a_write_that_data_hides_is_no_evidence() -> None:
    for write in ("v1.data.zero_()", "v1.data = v1.detach().clone()"):
        hidden = replace(parted("w2 = v1 * v1\n" + write), numeric=True)
        assert hides_a_write(hidden)
    assert not hides_a_write(replace(hidden, numeric=False))
    assert not hides_a_write(replace(parted("w2 = v1 * v1.data"), numeric=True))


def test_layouts_of_reductions_of_what_was_turned_are_known() -> None:
    turned = parted(
        "v3 = (v1 * 1)[None].swapaxes(0, -1)\nv4, v5 = v3.min(-1, keepdim=True)\n"
        "w2 = v1 * 1\nv6 = v4.flatten()\nv6.clip_(max=0.0)"
    )
    assert "v4 in the end" in turned.text
    assert only_layout_decides(turned)


def test_one_special_element_says_nothing_of_the_others() -> None:
    asked = call("exp", specs.Tensor(np.array([np.inf, 1.0]), "float64", requires_grad=True))
    asked.special = True
    theirs = operators.perform(asked, torch)
    for changed, differs in ((0, False), (1, True)):
        ours = operators.perform(asked, plugrad)
        ours.grads[0].values[changed] = np.nan
        assert (operators.compare(asked, ours, theirs) is not None) is differs


def test_an_error_of_linear_algebra_is_ours_or_from_inside() -> None:
    ours = plugrad.linalg.LinAlgError("linalg.inv: the input matrix is singular.")
    assert internal(ours) is None
    assert internal(np.linalg.LinAlgError("Singular matrix")) == "LinAlgError from inside"


def test_layouts_are_known_where_operands_lie_differently() -> None:
    for last in ("v4 = w2.view(-1)", "v4 = w2.reshape(-1)"):
        several = parted("v3 = v1.t()\nw2 = v3 + v1\n" + last)
        statement = first_other_layout(several.program)
        assert statement is not None
        assert statement.text == "w2 = v3 + v1"
        assert only_layout_decides(several)
    wrong = parted("v3 = v1.t()\nw2 = v3 + v1 * (lib.__name__ == 'torch')")
    assert not only_layout_decides(wrong)
    assert first_other_layout(Program.parse(LEAF + "w2 = lib.cat([v1.t(), v1.t()])")) is None
