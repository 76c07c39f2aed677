"""Every operator's forward rule: against double reverse, finite differences, and in gradients."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.graph.forward_rule import ForwardRule
from plugrad.testing.cases import OpCase, core_cases
from tests.core.ops.rules.tangents import (
    assert_tangents_match_differences,
    assert_tangents_match_double_reverse,
    assert_tangents_of_gradients_match,
)

CASES = [case for case in core_cases() if case.gradient]
# What has no forward rule in PyTorch, either; of these only `_standard_gamma` has a gradient.
WITHOUT_RULE = {
    "_ctc_loss_backward", "_dirichlet_grad", "_linalg_ldl_factor", "_sample_dirichlet",
    "_standard_gamma", "_standard_gamma_grad", "binomial", "floor_divide", "geqrf", "heaviside",
}  # fmt: skip
# For tangents or second derivatives, other operators compute these gradients.
WITHOUT_RULE |= {"_gru_layer_backward", "_lstm_layer_backward"}
each_case = pytest.mark.parametrize("case", CASES, ids=[case.op for case in CASES])


@each_case
def test_tangents_match_double_reverse(case: OpCase) -> None:
    assert_tangents_match_double_reverse(case)


@each_case
def test_tangents_match_differences(case: OpCase) -> None:
    assert_tangents_match_differences(case)


@each_case
def test_tangents_of_gradients_match_double_reverse(case: OpCase) -> None:
    assert_tangents_of_gradients_match(case)


def test_no_operator_lacks_a_rule() -> None:
    """But those that have none in PyTorch."""
    with plugrad.autograd.forward_ad.dual_level():
        plugrad.autograd.forward_ad.make_dual(plugrad.ones(1), plugrad.ones(1)) * 2
    missing = [
        op.full_name
        for op in all_operators()
        if op.namespace == "plugrad"
        and op.differentiable
        and op.kernel_for(plugrad.dispatch.dispatch_key("CompositeImplicitAutograd")) is None
        and not isinstance(op.forward_rule, ForwardRule)
    ]
    assert {name.partition(".")[0].rstrip("_") for name in missing} == WITHOUT_RULE
