"""Samples of reductions and normalizations of what a mask leaves."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import M, call, wrong

MASK = T(values=[[True, False, True], [True, True, False]], dtype="bool")
# Nothing is left of the second row.
NOTHING = T(values=[[True, False, True], [False, False, False]], dtype="bool")
ROW = T(values=[True, False, True], dtype="bool")
ANY = T(values=[[True, True, False], [True, False, True]], dtype="bool")
DEEP = T(values=[[[True]]], dtype="bool")
APART = T((2, 3), unique=True)
TOO_DEEP = wrong(IndexError, "mask dimensionality higher than of the input", M, 0, mask=DEEP)
TWICE = wrong(RuntimeError, "dim.1 appears multiple times", M, (1, -1), mask=MASK)


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": ("float32", "int64"), "errors": errors}
    return OpCase("masked." + op, samples, **{**settings, **options})


REDUCED = [call(APART, 1, mask=MASK), call(APART, mask=ROW, keepdim=True), call(APART, (1, 0))]
FLOATS: dict[str, Any] = {"dtypes": ("float32", "bfloat16")}
COMPLEX: dict[str, Any] = {"grad_dtypes": ("float64", "complex128")}
ALONG = [call(APART, 1, mask=MASK), call(APART, 0, mask=ANY), call(APART, -1)]

CASES = [
    case("sum", [*REDUCED, call(M, 1, mask=NOTHING, dtype=D("float64"))], TOO_DEEP, TWICE,
         dtypes=("float32", "int32", "bool"), **COMPLEX),
    case("prod", [*REDUCED, call(M, 1, mask=NOTHING)], **COMPLEX),
    case("cumsum", ALONG, TOO_DEEP, **COMPLEX),
    case("cumprod", ALONG),
    case("amax", REDUCED, TWICE),
    case("amin", REDUCED),
    *[case(name, [call(APART, 1, mask=NOTHING)], gradient=False) for name in ("amax", "amin")],
    case("argmax", [call(APART, 1, mask=MASK), call(APART, mask=ROW)], gradient=False),
    case("argmin", [call(APART, 1, mask=MASK), call(APART)], gradient=False),
    case("mean", REDUCED, wrong(ValueError, "Could not infer output dtype", T((2,), dtype="int64")),
         **FLOATS, **COMPLEX),
    case("median", [*ALONG, call(APART, keepdim=True)]),
    case("median", [call(APART, 1, mask=NOTHING)], gradient=False, dtypes=(),
         errors=[wrong(ValueError, "no fully masked out rows", T((2, 3), dtype="int64"), 1,
                       mask=NOTHING)]),
    case("norm", [call(M, 2.0, 1, mask=MASK), call(M, 3.0, mask=ROW, keepdim=True)], **FLOATS),
    case("norm", [call(M, float("-inf"), 1, mask=MASK)], dtypes=()),
    case("var", [*REDUCED, call(M, mask=MASK, correction=0.5), call(M, 1, False, mask=MASK)],
         wrong(AssertionError, "Only one of unbiased and correction", M, 1, True, correction=2),
         **FLOATS),
    case("std", [call(M, mask=MASK), call(M, 1, False, mask=MASK)], **FLOATS),
    *[case(name, ALONG, **FLOATS) for name in ("softmax", "softmin")],
    # -inf has no finite differences.
    case("log_softmax", ALONG[:2], gradient=False, **FLOATS),
    case("log_softmax", ALONG[2:], **FLOATS),
    case("normalize", [call(M, 2.0, 1, mask=MASK), call(M, 1.0, 0)], **FLOATS),
    case("logaddexp", [call(M, M, input_mask=MASK), call(M, M, other_mask=ROW)],
         second=False, **FLOATS),
    case("logsumexp", [call(M, 1, mask=MASK), call(M, mask=ROW)], **FLOATS),
]  # fmt: skip
