"""Each variant on all samples of the operators that come to it.

The oracle is the same call with the plain kernels.
"""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing import assert_close
from plugrad.testing.cases import OpCase
from plugrad.testing.cases.registry import core_cases
from tests.case_results import computed

variants = pytest.importorskip("plugrad_native.variants")

OPERATORS = {one.operator for one in variants.VARIANTS}
WORDS = ("gelu", "silu", "sigmoid", "softmax", "layer_norm", "tanh", "erf", "sum", "mean", "max")
WORDS += ("cross_entropy", "nll_loss", "mse_loss", "cat", "stack", "relu", "threshold")
WORDS += ("clamp", "exp", "index_select", "batch_norm", "pool")
CASES = [
    case
    for case in core_cases()
    if any(word in case.op for word in WORDS) and "float32" in case.dtypes
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_samples(request: pytest.FixtureRequest, case: OpCase, dtype: str) -> None:
    samples = case.all_samples()
    expected = [computed(case, sample, dtype) for sample in samples]
    request.getfixturevalue("native")
    tolerance = 1e-4 if dtype == "float32" else 1e-9
    for sample, plain in zip(samples, expected, strict=True):
        for one, other in zip(computed(case, sample, dtype), plain, strict=True):
            assert one.stride() == other.stride()
            assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.usefixtures("native")
def test_there_are_samples_of_every_variant() -> None:
    with plugrad.record_dispatch_trace() as events:
        for case in CASES:
            for sample in case.all_samples():
                computed(case, sample)
    ran = {event.op.removeprefix("plugrad::") for event in events if event.kind == "variant"}
    # Of what writes to lists there are no samples, see test_steps.py; nor here of plugrad-nn.
    # That of pooling without positions does not run while something watches: see test_windows.py.
    others = {"_update_sgd", "_update_adam", "embedding", "_max_pool1d"}
    assert ran == OPERATORS - others
