"""Samples of linear systems, inverses, determinants and norms of matrices."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, call, calls, fails

# Far from singular.
SQUARE = T(values=[[3.0, 1.0, -0.5], [0.5, -2.0, 1.0], [1.0, 0.25, 4.0]])
BATCH = T(values=[[[2.0, 1.0], [0.5, 3.0]], [[-1.0, 0.5], [1.0, 2.0]]])
WIDE = T((2, 3))
NOT_SQUARE = "A must be batches of square matrices, but they are 2 by 3 matrices"
WHOLE = T((2, 2), dtype="int64")
NO_FLOAT = "Expected a floating point or complex tensor as input. Got Long"


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "dtypes": ("float32", "complex64"),
        "grad_dtypes": REAL_AND_COMPLEX,
        "errors": errors,
    }
    return OpCase(op, samples, **{**settings, **options})


CASES = [
    case(
        "linalg.inv",
        calls((SQUARE,), (BATCH,)),
        fails(RuntimeError, NOT_SQUARE, WIDE),
        fails(RuntimeError, "The input tensor A must have at least 2 dimensions", T((2,))),
        fails(RuntimeError, NO_FLOAT, WHOLE),
        fails(RuntimeError, "singular", T(values=[[1.0, 1.0], [1.0, 1.0]])),
    ),
    case("inverse", calls((SQUARE,))),
    case(
        "linalg.det",
        calls((SQUARE,), (BATCH,)),
        fails(RuntimeError, NOT_SQUARE, WIDE),
        fails(RuntimeError, NO_FLOAT, WHOLE),
    ),
    case("det", calls((SQUARE,))),
    case("logdet", calls((T(values=[[2.0, 1.0], [0.5, 3.0]]),)), grad_dtypes=("float64",)),
    case(
        "linalg.solve",
        [
            call(SQUARE, T((3, 2))),
            call(SQUARE, T((3,))),
            call(BATCH, T((2, 2, 3))),
            call(BATCH, T((2, 1))),
            call(SQUARE, T((2, 3)), left=False),
        ],
        fails(RuntimeError, NOT_SQUARE, WIDE, T((2,))),
        fails(RuntimeError, r"for the equation AX = B \(3x3 and 2x1\)", SQUARE, T((2, 1))),
    ),
    case("matrix_power", calls((SQUARE, 1), (SQUARE, 2), (BATCH, 3), (SQUARE, -2))),
    case("matrix_power", calls((SQUARE, 0)), gradient=False),
    case(
        "linalg.matrix_norm",
        [
            call(WIDE),
            call(WIDE, 1),
            call(WIDE, -1),
            call(WIDE, float("inf"), keepdim=True),
            call(T((2, 3, 4)), -float("inf"), (0, 1)),
            call(T((2, 3, 4)), 1, (2, 0)),
        ],
        grad_dtypes=("float64",),
    ),
    case(
        "linalg.norm",
        [call(WIDE), call(WIDE, 1), call(T((3,)), 3), call(WIDE, 3, 1), call(WIDE, "fro", (0, 1))],
        fails(RuntimeError, "the input must be 1D or 2D. Got 3D", T((1, 1, 1)), 1),
        grad_dtypes=("float64",),
    ),
    case("linalg.vecdot", calls((WIDE, WIDE), (WIDE, T((3,))))),
    case("linalg.multi_dot", calls(([WIDE, T((3, 4)), T((4, 2))],), ([T((2,)), WIDE],))),
]
