"""Samples of decompositions of matrices, and of what is solved by them.

Eigenvectors and singular vectors have arbitrary signs or phases, so that their values and gradients
are in `tests/core/ops/decompositions_of_matrices`.
"""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, call, calls, fails, wrong

TALL = T((3, 2))
WIDE = T((2, 3))
BATCH = T((2, 2, 2))
EMPTY = T((0, 0))
# Eigenvalues and singular values that are apart.
SQUARE = T(values=[[3.0, 1.0, -0.5], [0.5, -2.0, 1.0], [1.0, 0.25, 4.0]])
SYMMETRIC = T(values=[[2.0, 0.5, -1.0], [0.5, -1.0, 0.25], [-1.0, 0.25, 4.0]])
DEFINITE = T(values=[[4.0, 1.0, -0.5], [1.0, 3.0, 0.5], [-0.5, 0.5, 5.0]])
TRIANGLES = T(values=[[[2.0, 0.0], [0.5, 3.0]], [[-1.0, 0.0], [1.0, 2.0]]])
FACTOR = T(values=[[2.0, 0.0], [0.5, 3.0]])
PIVOTS = T(values=[2, 2], dtype="int32")
VECTOR = T((2,))
COUNTS = T(values=[2, 2], dtype="int64")
WHOLE = T((2, 2), dtype="int64")
HALF = T((2, 2), dtype="float16")
NOT_SQUARE = "A must be batches of square matrices, but they are 2 by 3 matrices"
NO_MATRIX = "The input tensor A must have at least 2 dimensions"
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
        "linalg.solve_triangular",
        [
            call(SQUARE, T((3, 2)), upper=True),
            call(TRIANGLES, T((2, 1)), upper=False),
            call(SQUARE, T((2, 3)), upper=False, left=False),
            call(FACTOR, T((2, 2, 2)), upper=True, left=False, unitriangular=True),
            call(T((0, 0)), T((0, 2)), upper=True),
        ],
        wrong(RuntimeError, NOT_SQUARE, WIDE, WIDE, upper=True),
        wrong(RuntimeError, NO_MATRIX, VECTOR, WIDE, upper=True),
        wrong(RuntimeError, "The input tensor B must have at least 2", FACTOR, VECTOR, upper=True),
        wrong(RuntimeError, r"the equation AX = B \(2x2 and 3x2\)", FACTOR, TALL, upper=True),
        wrong(RuntimeError, r"XA = B \(2x2 and 2x3\)", FACTOR, WIDE, upper=True, left=False),
        wrong(NotImplementedError, "\"triangular_solve_cpu\" .* 'Long'", WHOLE, WHOLE, upper=True),
        wrong(NotImplementedError, "not implemented for 'Half'", HALF, HALF, upper=True),
    ),
    case(
        "triangular_solve",
        [call(WIDE, FACTOR, False), call(T((2, 2, 1)), FACTOR, True, True, True)],
        fails(RuntimeError, "Expected b to have at least 2 dimensions", VECTOR, FACTOR),
        fails(RuntimeError, "each A matrix is 2 by 2 but each b matrix is 3 by 2", TALL, FACTOR),
        fails(RuntimeError, "found b of type Long and A of type Double", WHOLE, FACTOR),
    ),
    # PyTorch's gradient has elements outside the triangle: see the tests of gradients.
    case(
        "cholesky_solve",
        [call(WIDE, FACTOR), call(T((2, 2, 1)), FACTOR, True)],
        fails(RuntimeError, "should have at least 2 dimensions, but has 1", VECTOR, FACTOR),
        fails(RuntimeError, "each A matrix is 2 by 2 but each b matrix is 3 by 2", TALL, FACTOR),
        gradient=False,
    ),
    case(
        "cholesky_inverse",
        # Only a triangle of each is read; its diagonal must not have a zero.
        [
            call(T(values=[[2.0, 0.7], [0.5, 3.0]])),
            call(T(values=[[[2.0, 0.3], [0.5, 3.0]], [[-1.0, 0.4], [1.0, 2.0]]]), True),
        ],
        fails(RuntimeError, NOT_SQUARE, WIDE),
        gradient=False,
    ),
    case(
        "linalg.cholesky",
        [call(DEFINITE), call(DEFINITE, upper=True), call(T((2, 0, 0)))],
        fails(RuntimeError, NOT_SQUARE, WIDE),
        fails(RuntimeError, NO_MATRIX, VECTOR),
        fails(RuntimeError, NO_FLOAT, WHOLE),
        fails(NotImplementedError, "\"cholesky_cpu\" not implemented for 'Half'", HALF),
        fails(RuntimeError, r"leading minor of order 2 is not", T(values=[[1.0, 2.0], [2.0, 1.0]])),
        fails(
            RuntimeError,
            r"linalg.cholesky: \(Batch element 1\): The factorization could not be completed",
            T(values=[[[1.0]], [[-1.0]]]),
        ),
        gradient=False,
    ),
    case(
        "linalg.cholesky_ex",
        [call(DEFINITE), call(T(values=[[[2.0, 1.0], [1.0, -1.0]], [[1.0, 0.0], [0.0, 1.0]]]))],
        wrong(RuntimeError, "cholesky_ex: .*order 1", T(values=[[-1.0]]), check_errors=True),
        gradient=False,
        undefined_where_failed=True,
    ),
    case(
        "cholesky",
        [call(DEFINITE), call(DEFINITE, True)],
        fails(RuntimeError, "cholesky: " + NOT_SQUARE, WIDE),
        fails(NotImplementedError, "\"cholesky_cpu\" not implemented for 'Long'", WHOLE),
        gradient=False,
    ),
    case(
        "linalg.qr",
        [call(T((3, 3))), call(TALL), call(BATCH), call(T((0, 2)))],
        fails(RuntimeError, NO_MATRIX, VECTOR),
        fails(RuntimeError, NO_FLOAT, WHOLE),
        fails(RuntimeError, "unrecognized mode 'x'", TALL, "x"),
        fails(NotImplementedError, "\"geqrf_cpu\" not implemented for 'Half'", HALF),
        full_rank=True,
    ),
    case(
        "linalg.qr",
        calls((WIDE,), (WIDE, "complete")),
        grad_dtypes=("float64",),
        full_rank=True,
    ),
    case(
        "linalg.qr",
        calls((TALL, "complete"), (TALL, "r"), (WIDE, "r")),
        gradient=False,
        full_rank=True,
    ),
    case("qr", calls((SQUARE,), (TALL, True)), grad_dtypes=("float64",), full_rank=True),
    case(
        "geqrf",
        [call(T(shape, requires_grad=False)) for shape in ((3, 3), (3, 2), (2, 2, 3), (2, 0))],
        fails(RuntimeError, "geqrf: input must have at least 2 dimensions", VECTOR),
        gradient=False,
    ),
    case(
        "linalg.householder_product",
        calls((TALL, VECTOR), (T((2, 3, 3)), T((2, 2))), (T((3, 0)), T((0,)))),
        fails(RuntimeError, "input must have at least 2 dimensions", VECTOR, VECTOR),
        fails(RuntimeError, "greater than or equal to input.shape.-1.", WIDE, VECTOR),
        fails(RuntimeError, "greater than or equal to tau.shape.-1.", TALL, T((3,))),
        fails(RuntimeError, "one dimension less than input", TALL, T((2, 2))),
        fails(RuntimeError, "tau dtype Float does not match", TALL, T((2,), dtype="float32")),
    ),
    case("orgqr", calls((TALL, VECTOR)), grad_dtypes=("float64",)),
    case(
        "ormqr",
        [call(TALL, VECTOR, T((3, 2))), call(TALL, VECTOR, WIDE, False, True)],
        fails(RuntimeError, "other must have at least 2 dimensions", TALL, VECTOR, VECTOR),
        fails(RuntimeError, "other.shape.-2. must be", TALL, VECTOR, WIDE),
    ),
    case(
        "linalg.eigvalsh",
        [call(SYMMETRIC), call(SYMMETRIC, "U"), call(EMPTY)],
        fails(RuntimeError, NOT_SQUARE, WIDE),
        fails(RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got x", BATCH, "x"),
        fails(NotImplementedError, "\"linalg_eigh_cpu\" not implemented for 'Long'", WHOLE),
        gradient=False,
    ),
    case(
        "linalg.svdvals",
        calls((SQUARE,), (TALL,), (T((2, 2, 3)),), (T((0, 2)),)),
        full_rank=True,
    ),
    case(
        "linalg.slogdet", calls((SQUARE,), (BATCH,), (EMPTY,)), fails(RuntimeError, NO_FLOAT, WHOLE)
    ),
    case("slogdet", calls((SQUARE,)), grad_dtypes=("float64",)),
    case(
        "linalg.lu",
        calls((SQUARE,), (TALL,), (T((2, 2, 3)),), (T((0, 2)),)),
        fails(RuntimeError, "linalg.lu: Expected tensor with 2 or more dimensions", VECTOR),
        fails(NotImplementedError, "\"lu_cpu\" not implemented for 'Long'", WHOLE),
        wrong(RuntimeError, "LU without pivoting is not implemented", BATCH, pivot=False),
    ),
    case(
        "linalg.lu_factor",
        calls((SQUARE,), (WIDE,)),
        fails(RuntimeError, "lu_factor: Expected tensor with 2 or more dimensions", VECTOR),
        fails(RuntimeError, r"U\[2,2\] is zero and using it", T(values=[[1.0, 1.0], [1.0, 1.0]])),
    ),
    case(
        "linalg.lu_factor_ex",
        [call(BATCH), call(T((2, 3, 2)))],
        wrong(RuntimeError, r"U\[1,1\] is zero", T(values=[[0.0]]), check_errors=True),
    ),
    case("lu", calls((BATCH,), (BATCH, True, True)), grad_dtypes=("float64",)),
    case(
        "lu_unpack",
        calls((FACTOR, PIVOTS), (T((3, 2)), PIVOTS), (WIDE, PIVOTS, True, False)),
        fails(RuntimeError, "lu_unpack: LU_pivots is expected to be a contiguous", FACTOR, FACTOR),
        fails(RuntimeError, "must be between 1 and", FACTOR, T(values=[0, 5], dtype="int32")),
    ),
    case("lu_unpack", calls((WIDE, PIVOTS, False)), gradient=False),
    case(
        "linalg.lu_solve",
        [
            call(FACTOR, PIVOTS, WIDE),
            call(FACTOR, PIVOTS, T((2, 2, 1)), adjoint=True),
            call(FACTOR, PIVOTS, TALL, left=False),
            call(FACTOR, PIVOTS, TALL, left=False, adjoint=True),
        ],
        fails(RuntimeError, NOT_SQUARE, WIDE, PIVOTS, WIDE),
        fails(
            RuntimeError, "linalg.lu_solve: Incompatible shapes of A and B", FACTOR, PIVOTS, TALL
        ),
        fails(RuntimeError, "pivots should be a Tensor of scalar type", FACTOR, COUNTS, WIDE),
        fails(
            RuntimeError,
            r"Expected LU.shape\[:-1\] and pivots.shape to be the same",
            FACTOR,
            T(values=[[2, 2]], dtype="int32"),
            WIDE,
        ),
    ),
    case("lu_solve", calls((WIDE, FACTOR, PIVOTS)), grad_dtypes=("float64",)),
    case(
        "linalg.solve_ex",
        [call(SQUARE, T((3, 2))), call(SQUARE, T((3,))), call(BATCH, T((3, 2)), left=False)],
        fails(RuntimeError, r"for the equation AX = B \(2x2 and 3x2\)", FACTOR, TALL),
        wrong(
            RuntimeError,
            "linalg.solve_ex: The solver failed because the input matrix is singular",
            T(values=[[1.0, 1.0], [1.0, 1.0]]),
            VECTOR,
            check_errors=True,
        ),
    ),
    case(
        "linalg.inv_ex",
        calls((SQUARE,), (BATCH,)),
        fails(RuntimeError, "linalg.inv: " + NOT_SQUARE, WIDE),
        wrong(RuntimeError, "The diagonal element 1 is zero", T(values=[[0.0]]), check_errors=True),
    ),
    case(
        "linalg.ldl_factor",
        [call(SYMMETRIC), call(SYMMETRIC, hermitian=True), call(T((2, 2, 2)))],
        fails(RuntimeError, "ldl_factor_ex: " + NOT_SQUARE, WIDE),
        gradient=False,
    ),
    case("linalg.ldl_factor_ex", calls((SYMMETRIC,), (T(values=[[0.0]]),)), gradient=False),
    case(
        "linalg.ldl_solve",
        [
            call(T(values=[[2.0, 0.0], [0.5, 3.0]], requires_grad=False), pivots, WIDE, **options)
            for pivots, options in (
                (T(values=[1, 2], dtype="int32"), {}),
                (PIVOTS, {"hermitian": True}),
                (T(values=[-2, -2], dtype="int32"), {}),
            )
        ],
        fails(
            RuntimeError, "Incompatible matrix sizes for .*linalg.ldl_solve", FACTOR, PIVOTS, TALL
        ),
        fails(
            RuntimeError,
            "Pivots given to ldl_solve must all satisfy",
            FACTOR,
            T(values=[0, 1], dtype="int32"),
            WIDE,
        ),
        gradient=False,
    ),
]
