"""Samples of special functions, divisors, steps, and neighbours and parts of numbers."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, INTEGERS, OpCase, OpSample, T
from plugrad.testing.cases.inputs import REALS, fails
from plugrad.testing.cases.tables.pointwise import one

REAL = (*REALS, "bool")
INT = T((2, 3), -9, 10, "int64")
FIXED = T((2, 3), strides="transposed", requires_grad=False)
NO_FLOATS = fails(NotImplementedError, "not implemented for 'Double'", T((2,)), T((2,)))
NO_INTEGERS = fails(
    NotImplementedError,
    "not implemented for 'Long'",
    T((2,), dtype="int64"),
    T((2,), dtype="int64"),
)
ENDS = [0.0, -0.0, 1.0, -1.0, -2.5, 30.0, float("nan")]
HALVES = T(values=[0.5] * len(ENDS), requires_grad=False)


def unary(op: str, low: float, high: float, *more: Any, **options: Any) -> OpCase:
    samples = [*one(low, high), OpSample((T(values=list(more), requires_grad=False),))]
    complex_ = fails(
        NotImplementedError, "not implemented for 'Complex", T((2,), dtype="complex64")
    )
    return OpCase(
        op, samples, **{"dtypes": REAL, "inplace": f"{op}_", "errors": [complex_], **options}
    )


def incomplete(op: str) -> OpCase:
    samples = [
        OpSample((T((2, 3), 0.5, 3.0, requires_grad=False), T((2, 3), 0.5, 3.0))),
        OpSample((T((2, 1), 0.5, 9.0, requires_grad=False), T((3,), 0.5, 9.0))),
        OpSample((T((), 0.5, 9.0, requires_grad=False), T((0, 3), 0.5, 9.0))),
    ]
    return OpCase(op, samples, dtypes=FLOATS, inplace=f"{op}_", errors=[NO_INTEGERS])


def integral(op: str) -> OpCase:
    pairs = [
        (INT, T((3,), -9, 10, "int64")),
        (INT, T((3,), 0, 10, "uint8")),
        (T((), -9, 10, "int32"), T((0,), -9, 10, "int32")),
        (T(values=[0, 0, -4, 7], dtype="int16"), T(values=[0, 5, 6, 0], dtype="int16")),
    ]
    samples = [OpSample(pair) for pair in pairs]
    return OpCase(
        op, samples, dtypes=INTEGERS, gradient=False, inplace=f"{op}_", errors=[NO_FLOATS]
    )


def polygamma(n: int, *values: float) -> OpCase:
    # Not as integers: at -1 and -2, poles, PyTorch rounds the first derivative to a large number.
    between = T((), -1.9, -1.1, "float64")
    samples = [OpSample((n, T((2, 3), 0.5, 4.0))), OpSample((n, between))]
    samples.append(OpSample((n, T(values=list(values), dtype="float64", requires_grad=False))))
    negative = fails(RuntimeError, "does not support negative n", -1, T((2,)))
    return OpCase("polygamma", samples, dtypes=("float32", "int64"), errors=[negative], rtol=1e-6)


CASES = [
    unary("lgamma", 0.5, 4.0, *ENDS),
    unary("digamma", 0.5, 4.0, *ENDS),
    unary("erfinv", -0.8, 0.8, 0.0, 1.0, -1.0, 1.5, 0.9999, float("nan")),
    unary("i0", -4.0, 4.0, 0.0, 40.0, float("nan")),
    unary("special_i1", 0.3, 4.0, 0.0, -40.0, float("nan"), torch="special.i1", inplace=None),
    polygamma(1, 1e-3, 30.0, -2.5),
    polygamma(2, 0.1, 30.0, -2.5),
    polygamma(0, 0.1, 30.0, -2.5),
    OpCase(
        "mvlgamma",
        [OpSample((T((2, 3), 1.5, 4.0), p)) for p in (1, 3)],
        dtypes=("float32", "int64"),
        errors=[fails(RuntimeError, "p has to be greater than or equal to 1", T((2,)), 0)],
    ),
    incomplete("igamma"),
    incomplete("igammac"),
    integral("gcd"),
    integral("lcm"),
    OpCase(
        "heaviside",
        [
            OpSample((FIXED, T((3,), requires_grad=False))),
            OpSample((T((), requires_grad=False), FIXED)),
            OpSample((T(values=ENDS, requires_grad=False), HALVES)),
        ],
        dtypes=REAL,
        gradient=False,
        inplace="heaviside_",
        errors=[
            fails(RuntimeError, "tensors with different dtypes", T((2,)), T((2,), dtype="float32")),
            fails(RuntimeError, "complex tensors", *[T((2,), dtype="complex64")] * 2),
        ],
    ),
    OpCase(
        "nextafter",
        [
            *(
                OpSample((sample.args[0], T((4,) if 4 in sample.args[0].shape else ())))
                for sample in one(-2, 2)
            ),
            OpSample((T(values=[0.0, 1.0, 1.0, float("inf")]), T(values=[-1.0, 1.0, 2.0, 0.0]))),
        ],
        dtypes=FLOATS,
        gradient=False,
        inplace="nextafter_",
        errors=[NO_INTEGERS],
    ),
    OpCase(
        "frexp",
        [*one(-9, 9), OpSample((T(values=[0.0, 1.0, 0.75, -6.0, 1e-30]),))],
        dtypes=FLOATS,
        gradient=False,
        errors=[fails(RuntimeError, "only supports floating-point dtypes", INT)],
    ),
]
