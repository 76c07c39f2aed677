"""Gradients do not depend on the memory layout of the incoming gradients."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.testing.cases import OpCase, OpSample, core_cases, flatten, resolve, seed_of
from plugrad.testing.conformance.kit.subject import DeviceArguments
from tests.core.ops.against_torch.oracle import to_numpy

# Gradients that PyTorch refuses, too: of a floored quotient, of an LDL decomposition, and of a QR
# decomposition that is not the reduced one, as its case declares.
CASES = [
    case
    for case in core_cases()
    if not re.search("floor_?div|ldl_factor", case.op) and (case.gradient or case.op != "linalg.qr")
]


def in_the_middle(tensor: Any) -> Any:
    """The same values behind others."""
    memory = plugrad.stack([tensor + 1, tensor, tensor - 1])
    return memory[1]


def turned(tensor: Any) -> Any:
    """The same values with the last dimension outermost, each second place between others."""
    order = list(range(tensor.ndim))[::-1]
    memory = plugrad.stack([tensor.permute(order) + 1, tensor.permute(order)], -1)
    return memory.select(-1, 1).permute(order)


def gradients(case: OpCase, sample: OpSample, laid_out: Any) -> list[Any] | None:
    made = DeviceArguments("float64", seed_of(case, sample), "cpu")
    plugrad.manual_seed(0)
    outputs = flatten(resolve(case.op)(*made.make(sample.args), **made.make(sample.kwargs)))
    roots = [item for item in outputs if isinstance(item, TensorBase) and needs_grad(item)]
    if not roots or not made.leaves:
        return None
    rng = np.random.default_rng(0)
    grads = []
    for root in roots:
        values = rng.standard_normal(tuple(root.shape))
        if root.dtype.is_complex:
            values = values + 1j * rng.standard_normal(tuple(root.shape))
        grads.append(laid_out(plugrad.tensor(values, dtype=root.dtype)))
    found = plugrad.autograd.grad(roots, made.leaves, grads, allow_unused=True)
    return [None if grad is None else to_numpy(grad) for grad in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("laid_out", [in_the_middle, turned], ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_the_layout_makes_no_difference(case: OpCase, laid_out: Any) -> None:
    for sample in case.all_samples():
        expected = gradients(case, sample, lambda tensor: tensor)
        if expected is None:
            continue
        found = gradients(case, sample, laid_out)
        assert found is not None
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
