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
WORDS += ("group_norm", "rms_norm")
WORDS += ("clamp", "exp", "index_select", "sqrt", "mm", "matmul", "linear", "batch_norm", "pool")
NAMES = {operator.partition(".")[0] for operator in OPERATORS}
CASES = [
    case
    for case in core_cases()
    if (case.op in NAMES or any(word in case.op for word in WORDS)) and "float32" in case.dtypes
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
    ran |= {name.partition(".")[0] for name in ran}  # some serve every overload
    # There are no samples of operators that write: see test_steps.py and test_pairs.py. Others for
    # plugrad-nn, recurrent layers and attention are in test_recurrence.py and test_attention.py.
    # The variant of pooling without positions does not run while a listener is active: see
    # test_windows.py. Images of samples are too small for convolution by tiles: see
    # test_convolutions.py, as are arrays of bfloat16: see test_bfloat16.py.
    assert OPERATORS - ran <= {
        *("convolution", "convolution_backward", "_to_copy"),
        *("_update_sgd", "_update_adam", "embedding", "_max_pool1d"),
        *(name for name in OPERATORS if name.startswith(("_lstm", "_gru", "_scaled_dot"))),
        *(name for name in OPERATORS if "_." in name),
    }
