"""Each variant on all samples of the operators that come to it, from one element on.

The oracle is the same call with the plain kernels, in float32.
"""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest

import plugrad
from plugrad.plugins import Variant, get_manager, hookimpl
from plugrad.testing import assert_close
from plugrad.testing.cases import OpCase
from plugrad.testing.cases.registry import core_cases
from tests.case_results import computed

variants = pytest.importorskip("plugrad_onednn.variants")
convolution = pytest.importorskip("plugrad_onednn.kernels.convolution")

WORDS = ("gelu", "silu", "sigmoid", "softmax", "layer_norm", "conv")
CASES = [
    case
    for case in core_cases()
    if any(word in case.op for word in WORDS) and "float32" in case.dtypes
]


@pytest.fixture
def from_one_element(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variants without a least size."""
    monkeypatch.setattr(convolution, "LEAST_PRODUCTS", 0)
    given = [
        Variant(
            one.operator,
            one.kernel,
            name=one.name,
            dtypes=one.dtypes,
            contiguous=one.contiguous,
        )
        for one in variants.VARIANTS
    ]
    module = types.ModuleType("plugrad_samples")
    vars(module)["plugrad_variants"] = hookimpl(lambda: {"cpu": given})
    get_manager().register(module, "samples")
    yield
    get_manager().unregister("samples")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_samples(request: pytest.FixtureRequest, case: OpCase) -> None:
    samples = case.all_samples()
    expected = [computed(case, sample) for sample in samples]
    request.getfixturevalue("from_one_element")
    for sample, plain in zip(samples, expected, strict=True):
        for one, other in zip(computed(case, sample), plain, strict=True):
            assert one.stride() == other.stride()
            assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_there_are_samples_of_every_variant(from_one_element: None) -> None:
    with plugrad.record_dispatch_trace() as events:
        for case in CASES:
            for sample in case.all_samples():
                computed(case, sample)
    ran = {event.op.removeprefix("plugrad::") for event in events if event.kind == "variant"}
    # For some processors oneDNN has but a reference implementation of these.
    optional = {"_softmax_backward_data", "_log_softmax_backward_data"}
    assert ran | optional == {one.operator for one in variants.VARIANTS}
