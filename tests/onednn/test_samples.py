"""Each variant on all samples of the operators that come to it, from one element on.

The oracle is the same call with the plain kernels, of the same dtype.
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
products = pytest.importorskip("plugrad_onednn.kernels.products")
library = pytest.importorskip("plugrad_onednn.library")

WORDS = {
    "float32": ("gelu", "silu", "sigmoid", "softmax", "layer_norm", "conv"),
    "bfloat16": ("conv", "mm", "matmul", "linear"),
}
CASES = [
    (case, dtype)
    for dtype, words in WORDS.items()
    for case in core_cases()
    if any(word in case.op for word in words) and dtype in case.dtypes
]
# Results are rounded to eight bits; before that, sums are in another order.
TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}


@pytest.fixture
def from_one_element(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variants without a least size."""
    monkeypatch.setattr(convolution, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(products, "LEAST_PRODUCTS", 0)
    given = [
        Variant(
            one.operator,
            one.kernel,
            name=one.name,
            dtypes=one.dtypes,
            contiguous=one.contiguous,
            problem=one.problem,
        )
        for one in variants.VARIANTS
    ]
    module = types.ModuleType("plugrad_samples")
    vars(module)["plugrad_variants"] = hookimpl(lambda: {"cpu": given})
    get_manager().register(module, "samples")
    yield
    get_manager().unregister("samples")


@pytest.mark.parametrize(("case", "dtype"), CASES, ids=lambda given: getattr(given, "op", given))
def test_samples(request: pytest.FixtureRequest, case: OpCase, dtype: str) -> None:
    samples = case.all_samples()
    expected = [computed(case, sample, dtype) for sample in samples]
    request.getfixturevalue("from_one_element")
    tolerance = TOLERANCES[dtype]
    for sample, plain in zip(samples, expected, strict=True):
        for one, other in zip(computed(case, sample, dtype), plain, strict=True):
            assert one.stride() == other.stride()
            assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", WORDS)
def test_there_are_samples_of_every_variant(from_one_element: None, dtype: str) -> None:
    if dtype == "bfloat16" and library.problem_of_bfloat16():
        pytest.skip(library.problem_of_bfloat16())
    with plugrad.record_dispatch_trace() as events:
        for case, of in CASES:
            for sample in case.all_samples() if of == dtype else ():
                computed(case, sample, dtype)
    ran = {event.op.removeprefix("plugrad::") for event in events if event.kind == "variant"}
    # For some processors oneDNN has but a reference implementation of these.
    optional = {"_softmax_backward_data", "_log_softmax_backward_data"}
    wanted = {one.operator for one in variants.VARIANTS if dtype in one.dtypes}
    assert ran | optional == wanted | optional
