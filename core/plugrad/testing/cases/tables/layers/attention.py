"""Samples of attention."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, wrong

QUERY, KEY, VALUE = T((2, 2, 3, 2)), T((2, 2, 4, 2)), T((2, 2, 4, 3))
SQUARE = T((1, 3, 2))
SOME = T(values=[[True, False, True, True], [True] * 4, [False, True, False, False]], dtype="bool")
# A fully masked row.
NONE = T(values=[[True, False, True], [False] * 3, [False, True, True]], dtype="bool")
ADDED = T((2, 1, 3, 4))


def case(op: str, samples: list[OpSample], *errors: Any, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "torch": f"nn.functional.{op}",
        "dtypes": ("float32", "bfloat16"),
        "errors": errors,
        "low_precision": 4.0,
    }
    return OpCase(op, samples, **{**settings, **options})


CASES = [
    case(
        "scaled_dot_product_attention",
        [
            call(QUERY, KEY, VALUE),
            call(T((3, 2)), T((4, 2)), T((4, 3))),
            call(SQUARE, SQUARE, SQUARE, is_causal=True),
            call(QUERY, KEY, VALUE, SOME),
            call(SQUARE, SQUARE, SQUARE, NONE),
            call(QUERY, KEY, VALUE, ADDED),
            call(QUERY, T((2, 1, 4, 2)), T((2, 1, 4, 3)), scale=0.3),
            call(T((1, 4, 2, 2)), T((1, 2, 3, 2)), T((1, 2, 3, 2)), enable_gqa=True),
            call(T((2, 3, 2), strides="transposed"), T((2, 4, 2)), T((2, 4, 3))),
            call(T((1, 0, 2)), T((1, 3, 2)), T((1, 3, 2))),
            call(T((1, 2, 2)), T((1, 0, 2)), T((1, 0, 2))),
        ],
        wrong(
            RuntimeError,
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            "1 key.dim: 2 and value.dim: 2 instead",
            *(T((2,)), T((3, 2)), T((3, 2))),
        ),
        wrong(
            RuntimeError,
            "Expected query, key, and value to have the same dtype, but got query.dtype: double "
            "key.dtype: float and value.dtype: double instead",
            *(T((3, 2)), T((3, 2), dtype="float32"), T((3, 2))),
        ),
        wrong(
            RuntimeError,
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            "attn_mask.dtype: long int and  query.dtype: double instead",
            *(T((3, 2)), T((3, 2)), T((3, 2)), T((3, 3), dtype="int64")),
        ),
        OpError(
            call(*[T((3, 2), dtype="int64")] * 3),
            RuntimeError,
            "expected query, key and value of a floating point dtype, but got Long",
            torch_differs=True,  # it says so of a factor
        ),
        wrong(
            NotImplementedError,
            "not implemented for 'ComplexDouble'",
            *[T((3, 2), dtype="complex128")] * 3,
        ),
        wrong(
            RuntimeError,
            "dropout probability has to be between 0 and 1, but got 1.5",
            *(T((3, 2)), T((3, 2)), T((3, 2)), None, 1.5),
        ),
    ),
]
