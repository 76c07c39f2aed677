"""Every batching rule and every forward rule on JAX's arrays. Oracles: a loop; the CPU.

The rules call operators and are independent of their arrays. This takes minutes, because each call
is compiled for its shapes; `test_batching` and `test_forward_mode` try one rule of each kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad.testing.cases import FAMILIES, Arguments, OpCase, core_cases, family_cases
from tests.core.ops.harness import _finite_differences
from tests.core.ops.rules.batching_harness import OpCall, calls_of, check, on_device
from tests.core.ops.rules.tangents import _forward, _leaf_samples, _random_like

_CASES = [case for case in core_cases() if case.gradient and _leaf_samples(case)]


class OnJax(Arguments):
    """The arguments of a sample as tensors on JAX."""

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        return super().tensor_of(values, layout).to("jax")


@pytest.mark.long
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "composites"])
def test_batching_rules_agree_with_loops(family: str) -> None:
    found: dict[str, OpCall] = {}
    for case in family_cases(family):
        for sample in case.all_samples():
            for call in calls_of(case, sample, "float64").values():
                found.setdefault(call.op.full_name, call)
    for call in found.values():
        check(on_device(call, "jax"))


@pytest.mark.long
@pytest.mark.parametrize("case", _CASES, ids=[case.op for case in _CASES])
def test_tangents_are_those_of_the_cpu(case: OpCase) -> None:
    sample, dtype = _leaf_samples(case)[0], case.grad_dtypes[0]
    found = []
    for kind in (Arguments, OnJax):
        function, leaves = _finite_differences(case, sample, dtype, kind)
        tangents = [_random_like(leaf, 7 + i).to(leaf.device) for i, leaf in enumerate(leaves)]
        found.append([each.detach().cpu().numpy() for each in _forward(function, leaves, tangents)])
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
