"""Samples of pseudo-inverses, least squares, ranks, condition numbers and exponentials."""

from __future__ import annotations

from math import inf
from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, call, calls, fails, wrong

# Of full rank, with singular values that are far apart.
TALL = T(values=[[3.0, 1.0], [0.5, -2.0], [1.0, 0.25]])
WIDE = T(values=[[3.0, 0.5, 1.0], [1.0, -2.0, 0.25]])
SQUARE = T(values=[[3.0, 1.0], [0.5, -2.0]])
BATCH = T(values=[[[2.0, 1.0], [0.5, 3.0]], [[-1.0, 0.5], [1.0, 2.0]]])
SYMMETRIC = T(values=[[2.0, 0.5], [0.5, -1.0]])
SINGULAR = T(values=[[1.0, 2.0], [2.0, 4.0]])
LIMITS = T(values=[0.1, 2.5], requires_grad=False, dtype="float64")
NOTHING = T(values=[[1.0, 0.0], [0.0, 0.0]])
ROW = T((3,))
NOT_SQUARE = "A must be batches of square matrices, but they are 3 by 2 matrices"
TOO_FEW = "must have at least 2 dimensions"


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "dtypes": ("float32", "complex64"),
        "grad_dtypes": REAL_AND_COMPLEX,
        "errors": errors,
    }
    return OpCase(op, samples, **{**settings, **options})


CASES = [
    case(
        "linalg.pinv",
        [
            call(TALL),
            call(WIDE, rtol=0.1),
            call(BATCH, atol=LIMITS),
            call(SQUARE, 1e-10),
            call(BATCH, LIMITS),
            call(T((0, 2))),
        ],
        fails(RuntimeError, "expected a tensor with 2 or more dimensions", ROW),
        fails(RuntimeError, "expected a tensor with 2 or more", T((2, 2), dtype="int64")),
    ),
    case(
        "linalg.pinv",
        [call(SYMMETRIC, hermitian=True), call(SINGULAR)],
        grad_dtypes=("float64",),
        gradient=False,  # of matrices that stay symmetric, or singular
    ),
    case("pinverse", calls((TALL,), (WIDE, 0.1))),
    case(
        "linalg.matrix_rank",
        [
            call(TALL),
            call(SINGULAR),
            call(BATCH, atol=2.5),
            call(SYMMETRIC, hermitian=True),
            call(SQUARE, 3.0),
            call(BATCH, atol=LIMITS),
            call(BATCH, LIMITS),
            call(T((2, 0, 3))),
        ],
        fails(RuntimeError, TOO_FEW, ROW),
        gradient=False,
    ),
    case(
        "linalg.cond",
        calls((TALL,), (BATCH, 2), (SQUARE, -2)),
        fails(RuntimeError, r"linalg.cond\(ord=1\): " + NOT_SQUARE, TALL, 1),
        fails(RuntimeError, "linalg.cond got an invalid norm type: 3", SQUARE, 3),
        fails(RuntimeError, TOO_FEW, ROW),
        grad_dtypes=("float64",),
        full_rank=True,
    ),
    case(
        "linalg.cond",
        calls((SINGULAR, 1), (T((0, 0)),), (SQUARE, 1), (BATCH, -inf), (SQUARE, "fro")),
        gradient=False,  # PyTorch's backward fails
        full_rank=True,
    ),
    case(
        "linalg.lstsq",
        [
            call(TALL, T((3, 2))),
            call(TALL, ROW, driver="gelsd"),
            call(WIDE, T((2, 2)), driver="gels"),
            call(BATCH, T((2, 2)), driver="gelss"),
            call(T(values=[[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), T((3, 1)), driver="gels"),
            call(T((1, 3, 2)), T((2, 3, 1)), driver="gelsd"),
            call(BATCH, T((2, 2))),
            call(WIDE, T((2, 2)), 0.5),
            call(T((2, 3, 0)), T((2, 3, 2)), driver="gelss"),
            call(T((0, 3)), T((0, 2)), driver="gels"),
        ],
        wrong(RuntimeError, "`driver` should be one of", TALL, ROW, driver="x"),
        fails(RuntimeError, "size.-2. should match other.size.-2.", TALL, T((2, 2))),
        fails(RuntimeError, "input must have at least 2 dimensions", ROW, ROW),
        wrong(RuntimeError, "does not have full rank", NOTHING, T((2, 1)), driver="gels"),
        fails(RuntimeError, r"\(input.dim\(\) - other.dim\(\)\) <= 1", TALL, T((2, 3, 2))),
        fails(RuntimeError, "to have the same dtype", TALL, T((3, 2), dtype="int64")),
    ),
    case(
        "linalg.matrix_exp",
        calls((SQUARE,), (BATCH,), (T((3, 3), -5, 5),), (T((0, 0)),), (T((1, 1)),)),
        fails(RuntimeError, NOT_SQUARE, TALL),
        fails(RuntimeError, "floating point or complex", T((2, 2), dtype="int64")),
    ),
    case("matrix_exp", calls((SQUARE,))),
    case(
        "linalg.tensorinv",
        calls((T(values=[[[3.0, 1.0]], [[0.5, -2.0]]]),), (SQUARE, 1)),
        fails(RuntimeError, "strictly positive integer for 'ind', but got 0", SQUARE, 0),
        fails(RuntimeError, "but got 1 != 6", T((2, 3))),
    ),
    case(
        "linalg.tensorsolve",
        calls((T(values=[[[3.0, 1.0]], [[0.5, -2.0]]]), T((2, 1))), (SQUARE, T((2,)), (0,))),
        fails(RuntimeError, "prod.self.shape..other.ndim", SQUARE, SQUARE),
    ),
    case("linalg.diagonal", [call(TALL), call(BATCH, offset=1, dim1=0)], view=True),
    case(
        "nuclear_norm",
        calls((TALL,), (BATCH, (1, 2), True)),
        grad_dtypes=("float64",),
        full_rank=True,
    ),
    case("frobenius_norm", calls((BATCH, (0, 2)), (TALL, 1, True)), grad_dtypes=("float64",)),
    case(
        "linalg.matrix_norm",
        [call(TALL, "nuc"), call(TALL, 2), call(BATCH, -2, (0, 2), True)],
        grad_dtypes=("float64",),
    ),
    case(
        "norm",
        calls((TALL, "nuc"), (BATCH, "nuc", (0, 1))),
        grad_dtypes=("float64",),
        full_rank=True,
    ),
]
