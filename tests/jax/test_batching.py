"""Batching rules on arrays that cannot be written to. Oracle: the operator in a loop."""

from __future__ import annotations

import plugrad
from plugrad.func import grad, vmap
from plugrad.testing.cases import family_cases
from tests.core.ops.rules.batching_harness import OpCall, calls_of, check, in_place_twin, on_device

_WANTED = {
    "add.Tensor", "where.self", "sum", "amax", "view", "permute", "expand", "slice.Tensor",
    "select.int", "diagonal", "unbind.int", "cat", "roll", "mm", "matmul", "squeeze", "_softmax",
}  # fmt: skip


_FAMILIES = ("activation", "linalg", "pointwise", "reductions", "shape", "views")


def test_rules_agree_with_loops() -> None:
    found: dict[str, OpCall] = {}
    for family in _FAMILIES:
        for case in family_cases(family):
            for sample in case.all_samples()[:2]:
                for call in calls_of(case, sample, "float32").values():
                    if call.op.full_name in _WANTED:
                        found.setdefault(call.op.full_name, call)
    assert set(found) == _WANTED
    for call in found.values():
        check(on_device(call, "jax"))
        twin = in_place_twin(call)
        if twin is not None:
            check(on_device(twin, "jax"))


def test_strides_are_told_inside_of_transforms() -> None:
    x = plugrad.arange(18.0, device="jax").reshape(2, 3, 3)

    def corner(x: plugrad.Tensor) -> plugrad.Tensor:
        return x.t().as_strided((2, 2), (1, 3)).sum()

    expected = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert vmap(grad(corner))(x).tolist() == [expected, expected]
