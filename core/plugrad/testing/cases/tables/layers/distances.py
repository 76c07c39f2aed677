"""Samples of distances and products of pairs of vectors."""

from __future__ import annotations

from plugrad.plugins.cases import OpCase, T
from plugrad.testing.cases.inputs import call, wrong

A, B = T((2, 3)), T((2, 3))
REAL = ("float32", "bfloat16", "int64", "complex64")

CASES = [
    OpCase(
        "cosine_similarity",
        [call(A, B), call(A, T((3,)), 1), call(A, B, dim=0), call(T(()), T(()), 0)],
        dtypes=REAL,
        errors=[
            wrong(
                RuntimeError,
                r"The size of tensor a \(3\) must match the size of tensor b \(4\)",
                *(A, T((2, 4))),
            ),
        ],
        low_precision=4.0,
    ),
    # The gradient goes through norms below eps, so it is not the derivative.
    OpCase("cosine_similarity", [call(A, B, dim=0, eps=5.0)], dtypes=(), gradient=False),
    OpCase(
        "pairwise_distance",
        [
            call(A, B),
            call(A, T((3,)), 1.0, 0.0, True),
            call(A, B, p=float("inf")),
            call(T((3,)), T((3,))),
        ],
        dtypes=REAL,
        grad_dtypes=("float64", "complex128"),
        low_precision=4.0,
    ),
    OpCase(
        "pdist",
        [
            *(call(T((4, 3)), p) for p in (1.0, 2.0, 3.0, float("inf"))),
            call(T((1, 3))),
            call(T((3, 0))),
        ],
        dtypes=("float32", "bfloat16", "int64", "complex64"),
        errors=[
            wrong(RuntimeError, "pdist only supports 2D tensors, got: 1D", T((3,))),
            wrong(RuntimeError, "pdist only supports non-negative p values", A, -1.0),
        ],
        low_precision=4.0,
    ),
    OpCase("pdist", [call(A, 0.0)], dtypes=("float32",), gradient=False),
    OpCase(
        "bilinear",
        [
            call(A, T((2, 4)), T((2, 3, 4)), T((2,))),
            call(T((3,)), T((4,)), T((2, 3, 4))),
            call(T((2, 1, 3)), T((2, 1, 4)), T((2, 3, 4))),
            call(T((0, 3)), T((0, 4)), T((2, 3, 4)), T((2,))),
        ],
        dtypes=("float32", "bfloat16", "int64"),
        errors=[
            wrong(
                RuntimeError,
                "input batch dimensions do not match at dim 0: got 2 and 1",
                *(A, T((1, 4)), T((2, 3, 4))),
            ),
            wrong(
                RuntimeError,
                "input1 size does not match weight size: got 3 but expected 5",
                *(A, T((2, 4)), T((2, 5, 4))),
            ),
            wrong(
                RuntimeError,
                "All tensors must have the same dtype, got input1: double, input2: float, weight: "
                "double",
                *(A, T((2, 4), dtype="float32"), T((2, 3, 4))),
            ),
        ],
        low_precision=4.0,
    ),
]
