"""Samples of combinations, integrals, differences, powers and different elements."""

from __future__ import annotations

from plugrad.plugins.cases import FLOATS, INTEGERS, OpCase, T
from plugrad.testing.cases.inputs import (
    CUBE,
    DTYPES,
    EMPTY,
    REAL_AND_COMPLEX,
    REALS,
    SCALAR,
    M,
    call,
    calls,
    case,
    fails,
    wrong,
)

NUMERIC = ("float32", "int64", "complex64")
ROW = T((4,))
ASCENDING = T(values=[0.0, 0.5, 2.0])
REPEATED = T(values=[[3, 1, 1], [3, 0, 1]], requires_grad=False)
EQUAL_ROWS = T(values=[[1, 2], [0, 5], [1, 2], [1, 2]], requires_grad=False)
INDEX = T(values=[0, 2, 0], dtype="int64")
# No two are equal: they would share the gradient of an extremum.
TARGET = T(values=[[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
COLUMNS = T(values=[[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]])
OUTSIDE = T(values=[9], dtype="int64")
SOURCE = T(values=[[4.0, 4.5], [2.5, 9.0], [0.5, 8.0]])

CASES = [
    case(
        "block_diag",
        calls((M, SCALAR, ROW), (T((0, 2)), M), (M, T((1, 2), dtype="int64"))),
        fails(RuntimeError, "Input 0 has 3 dimensions", CUBE),
    ),
    case(
        "cartesian_prod",
        calls((ROW, T((2,)), T((1,))), (ROW,)),
        fails(RuntimeError, r"Expect a 1D vector, but got shape \[2, 3\]", M),
    ),
    case(
        "chain_matmul",
        calls((M, T((3, 1)), T((1, 2)), T((2, 2))), (M,)),
        fails(RuntimeError, "Tensor dimension is 1, expected 2 instead", ROW),
        dtypes=("float32",),
    ),
    case(
        "combinations",
        [
            call(ROW),
            call(ROW, 3),
            call(ROW, 2, True),
            call(ROW, r=1, with_replacement=True),
            call(T((1,)), 2),
        ],
        fails(RuntimeError, "Expect a 1D vector", M),
        fails(RuntimeError, "Expect a non-negative number, but got -1", ROW, -1),
    ),
    *(
        case(
            name,
            [
                call(M),
                call(M, ASCENDING),
                call(T((3, 2)), ASCENDING, dim=0),
                call(M, M, dim=0),
                call(M, dx=0.5, dim=0),
                call(T((2, 1, 2)), T((1, 2))),
            ],
            fails(RuntimeError, "There must be one `x` value for each sample", M, T((2,))),
            wrong(RuntimeError, "only support dx as a real number", M, dx=1j),
            dtypes=NUMERIC,
        )
        for name in ("trapezoid", "cumulative_trapezoid")
    ),
    case("trapz", [call(M), call(M, ASCENDING), call(M, dx=2.0, dim=0)], dtypes=NUMERIC),
    case(
        "gradient",
        [
            call(ROW),
            call(T((3, 4)), spacing=2.0),
            call(T((3, 4)), spacing=[1.0, 0.5], edge_order=2),
            call(T((3, 4)), dim=1, edge_order=2),
            call(T((3, 4)), dim=(1, 0)),
            call(T((3, 4)), spacing=0.5, dim=(1, 0)),
            call(T((3, 4)), spacing=[1.0, 0.5], dim=(1, 0)),
            call(T((3, 3)), spacing=(ASCENDING, ASCENDING), dim=(1, 0)),
            call(T((3, 2)), spacing=(ASCENDING,), dim=0),
            call(T((3, 2)), spacing=(ASCENDING,), dim=0, edge_order=2),
        ],
        wrong(RuntimeError, "only supports edge_order=1 and edge_order=2", ROW, edge_order=3),
        wrong(RuntimeError, "but got a list of length 2", ROW, spacing=[1.0, 2.0]),
        wrong(RuntimeError, "at least edge_order.1", T((1,))),
        wrong(RuntimeError, "does not support uint8", T((3,), dtype="uint8")),
        dtypes=NUMERIC,
    ),
    *(
        case(
            "index_reduce",
            [
                call(TARGET, 0, INDEX, SOURCE, reduce),
                call(
                    T((2, 3)),
                    1,
                    INDEX,
                    T(values=[[1, 2, 3], [6, 5, 4]]),
                    reduce,
                    include_self=False,
                ),
            ],
            fails(RuntimeError, "one of prod, mean, amax or amin", M, 0, INDEX, M, "sum"),
            fails(
                IndexError, "out of range", ROW, 0, T(values=[9], dtype="int64"), T((1,)), "prod"
            ),
            dtypes=("float32", "int64"),
            grad_dtypes=("float64",),
            inplace="index_reduce_",
        )
        for reduce in ("prod", "mean", "amax", "amin")
    ),
    OpCase(
        "logcumsumexp",
        calls((ROW, 0), (M, 1), (M, 0), (SCALAR, 0), (EMPTY, 0), (T((1, 2)), 0)),
        dtypes=(*FLOATS, "complex64"),
        grad_dtypes=REAL_AND_COMPLEX,
        low_precision=4,
        errors=[
            fails(NotImplementedError, "for 'Long'", INDEX, 0),
            fails(IndexError, "Dimension out of range", ROW, 1),
        ],
    ),
    case(
        "renorm",
        calls((M, 2, 0, 0.5), (M, 1, -1, 1.0), (T((2, 2, 3)), 1.5, 1, 0.3), (M, 3, 0, 100.0)),
        fails(RuntimeError, "renorm: input needs at least 2 dimensions", ROW, 2, 0, 1),
        fails(RuntimeError, "renorm: non-positive-norm not supported", M, 0, 0, 1),
        fails(RuntimeError, "expected maxnorm to be >= 0 but got -1", M, 1, 0, -1),
        dtypes=("float32", "complex64"),
        inplace="renorm_",
    ),
    OpCase(
        "unique",
        [
            call(REPEATED),
            call(REPEATED, return_inverse=True, return_counts=True),
            call(EQUAL_ROWS, dim=0, return_inverse=True),
            call(REPEATED, dim=-1, return_inverse=True, return_counts=True),
            call(T((), requires_grad=False), return_counts=True),
            call(T((0,), requires_grad=False)),
        ],
        gradient=False,
        dtypes=REALS,
        errors=[
            fails(IndexError, "Dimension out of range", ROW, True, False, False, 3),
            fails(RuntimeError, "There are 0 sized dimensions", EMPTY, True, False, False, 1),
        ],
    ),
    OpCase(
        "unique_consecutive",
        [
            call(REPEATED),
            call(REPEATED, return_inverse=True, return_counts=True),
            call(EQUAL_ROWS, return_inverse=True, return_counts=True, dim=0),
        ],
        gradient=False,
        dtypes=REALS,
    ),
    OpCase(
        "unravel_index",
        calls((INDEX, (2, 2)), (INDEX, 4), (T(values=[[5], [0]], dtype="int64"), (3, 1, 2))),
        gradient=False,
        dtypes=(),
        errors=[
            fails(ValueError, "cannot have negative values", INDEX, (2, -1)),
            fails(TypeError, "'indices' to be integer dtype", ROW, (2, 2)),
        ],
    ),
    case(
        "linalg.vander",
        [call(ROW), call(M, N=2), call(T((1,)), N=3)],
        wrong(RuntimeError, "N must be greater than 1", ROW, N=1),
        dtypes=(*INTEGERS, "float32", "complex64"),
    ),
    case(
        "vander",
        [call(ROW), call(ROW, 2), call(ROW, N=3, increasing=True), call(ROW, 0)],
        fails(RuntimeError, "x must be a one-dimensional tensor", M),
        fails(RuntimeError, "N must be non-negative", ROW, -1),
        dtypes=("float32", "complex64"),
        gradient=False,  # PyTorch's backward fails
    ),
    case("Tensor.unique", calls((REPEATED,)), gradient=False, dtypes=DTYPES[:1]),
]
