"""Samples of counts, histograms, quantiles and covariances."""

from __future__ import annotations

from math import inf, nan

from plugrad.plugins.cases import FLOATS, INTEGERS, OpCase, T
from plugrad.testing.cases.inputs import EMPTY, SCALAR, M, call, calls, fails, wrong

NUMBERS = T(values=[0, 3, 1, 1], dtype="int64")
WEIGHTS = T((4,), requires_grad=False)
TIES = T(values=[[2.0, 1.0, 2.0, 1.0], [3.0, 0.0, -1.0, 5.0]])
HOLES = T(values=[[nan, 2.0, 5.0, -1.0], [4.0, nan, 3.0, nan]])
ROW = T((5,), unique=True)
SQUARE = T((3, 4), unique=True)
Q = T(values=[0.0, 0.3, 1.0], requires_grad=False)
EDGES = T(values=[-2.0, -0.5, 0.1, 2.0], requires_grad=False)
POINTS = T((5, 2), -1.0, 1.0, requires_grad=False)
UNTRACKED = T((2, 5), requires_grad=False)
COUNTS = T(values=[2, 1, 3, 1], dtype="int64")
SHARES = T(values=[0.5, 1.0, 0.25, 2.0], dtype="float64")

CASES = [
    OpCase(
        "bincount",
        [call(NUMBERS), call(NUMBERS, None, 6), call(NUMBERS, WEIGHTS, minlength=2)],
        gradient=False,
        dtypes=("float32", "int64", "bool"),
        errors=[
            fails(NotImplementedError, "\"bincount_cpu\" not implemented for 'Double'", ROW),
            fails(RuntimeError, "1-d non-negative integral", T((2, 2), dtype="int64")),
            fails(RuntimeError, "1-d non-negative integral", T(values=[-1], dtype="int64")),
            fails(RuntimeError, "minlength should be >= 0", NUMBERS, None, -1),
            fails(RuntimeError, "should be 1-d and have the same length", NUMBERS, ROW),
        ],
    ),
    OpCase(
        "cov",
        [
            call(SQUARE),
            call(SQUARE, correction=0),
            call(ROW),
            call(SCALAR, correction=0),
            call(SQUARE, fweights=COUNTS),
            call(SQUARE, aweights=SHARES),
            call(SQUARE, fweights=COUNTS, aweights=SHARES, correction=2),
        ],
        dtypes=("float32", "int64", "complex64"),
        grad_dtypes=("float64", "complex128"),
        errors=[
            fails(RuntimeError, "expected input to have two or fewer dimensions", T((1, 1, 1))),
            wrong(RuntimeError, "same numel as there are observations", M, fweights=COUNTS),
            wrong(RuntimeError, "fweights to have integral dtype", SQUARE, fweights=SHARES),
            wrong(RuntimeError, "aweights to have floating point dtype", SQUARE, aweights=COUNTS),
            wrong(
                RuntimeError,
                "fweights cannot be negative",
                T((1, 1)),
                fweights=T(values=[-1], dtype="int64"),
            ),
        ],
    ),
    OpCase(
        "corrcoef",
        calls((SQUARE,), (ROW,)),
        dtypes=("float32", "int64"),
        grad_dtypes=("float64",),
        errors=[fails(RuntimeError, "expected input to have two or fewer", T((1, 1, 1)))],
    ),
    OpCase(
        "histc",
        [
            call(UNTRACKED, 4),
            call(UNTRACKED, bins=3, min=-1, max=1),
            call(T(values=[1.0, 1.0], requires_grad=False), 3),
            call(T(values=[-1.0, 0.5, nan, 2.0, inf], requires_grad=False), 4, -1, 2),
            call(T((0,), requires_grad=False), 2),
        ],
        gradient=False,
        dtypes=FLOATS,
        errors=[
            fails(RuntimeError, "bins must be > 0, but got 0", M, 0),
            fails(RuntimeError, "max must be larger than min", M, 2, 1, 0),
            fails(RuntimeError, r"range of \[0, inf\] is not finite", M, 2, 0, inf),
            fails(NotImplementedError, "not implemented for 'Long'", NUMBERS),
        ],
    ),
    OpCase(
        "histogram",
        [
            call(UNTRACKED, 4),
            call(UNTRACKED, bins=3, range=(-1.0, 1.0), density=True),
            call(UNTRACKED, EDGES),
            call(UNTRACKED, EDGES, weight=T((2, 5), 0.0, 1.0, requires_grad=False)),
            call(T((0,), requires_grad=False), 2),
        ],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(RuntimeError, "bins must be > 0, but got 0", UNTRACKED, 0),
            fails(RuntimeError, "bins tensor should have one dimension", UNTRACKED, M),
            wrong(RuntimeError, "min should not exceed max", UNTRACKED, 2, range=(1.0, 0.0)),
            wrong(RuntimeError, "range should have 2 elements", UNTRACKED, 2, range=(1.0,)),
            wrong(RuntimeError, "should have the same shape", UNTRACKED, 2, weight=M),
        ],
    ),
    OpCase(
        "histogramdd",
        [
            call(POINTS, [2, 3]),
            call(POINTS, 2, range=[-1.0, 1.0, 0.0, 1.0], density=True),
            call(POINTS, [EDGES, EDGES], weight=T((5,), 0.0, 1.0, requires_grad=False)),
        ],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(RuntimeError, "should have at least 2 dimensions", T((5,)), [2]),
            wrong(RuntimeError, "should have 4 elements, but got 2", POINTS, [1, 1], range=[0, 1]),
        ],
    ),
    OpCase(
        "mode",
        calls((TIES,), (TIES, 0, True)),
        dtypes=(*FLOATS, *INTEGERS, "bool"),
        gradient=False,  # what is more frequent changes with any element
    ),
    OpCase(
        "mode",
        calls((T((2, 3), unique=True), 1), (SCALAR,)),
        dtypes=(),
        errors=[fails(IndexError, "Expected reduction dim 0 to have non-zero size", EMPTY, 0)],
    ),
    OpCase(
        "nanmedian",
        [call(HOLES), call(HOLES, 1), call(HOLES, 0, True), call(SQUARE), call(SCALAR, 0)],
        dtypes=("float32", "bfloat16"),
        errors=[
            fails(IndexError, "Expected reduction dim 0 to have non-zero size", EMPTY, 0),
            fails(NotImplementedError, "for 'Bool'", T((2,), dtype="bool")),
        ],
    ),
    OpCase("nanmedian", calls((SQUARE,), (SQUARE, -1)), dtypes=("int64", "uint8")),
    *(
        OpCase(
            name,
            [
                call(ROW, 0.4),
                call(SQUARE, Q, 1),
                call(SQUARE, Q, dim=0, keepdim=True),
                call(SQUARE, 0.3, 1, True, interpolation="nearest"),
                call(SQUARE, Q, interpolation="lower"),
                call(SQUARE, Q, -1, interpolation="higher"),
                call(SQUARE, Q, -1, interpolation="midpoint"),
                call(SCALAR, 0.5),
            ],
            dtypes=("float32",),
            errors=[
                fails(RuntimeError, r"range \[0, 1\] but got 1.5", ROW, 1.5),
                fails(RuntimeError, "must be in the range", ROW, T(values=[2.0])),
                fails(RuntimeError, "q must be a scalar or 1D tensor", ROW, M),
                fails(RuntimeError, "input tensor must be non-empty", EMPTY, 0.5),
                fails(RuntimeError, "must be either float or double", NUMBERS, 0.5),
                wrong(RuntimeError, "midpoint or nearest, but got x", ROW, 0.5, interpolation="x"),
            ],
        )
        for name in ("quantile", "nanquantile")
    ),
    OpCase("quantile", calls((HOLES, Q, 1)), dtypes=("float32",), gradient=False),
    OpCase("nanquantile", calls((HOLES, Q, 1), (HOLES, Q)), dtypes=("float32",)),
]
