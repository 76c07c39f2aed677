"""Samples of activation functions: smooth regions, kinks and extreme arguments."""

from __future__ import annotations

import math
from typing import Any

from plugrad.plugins.cases import FLOATS, D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import calls, fails

DTYPES = (*FLOATS, "int64", "bool", "complex64")
NUMERIC = (*FLOATS, "int64", "int32", "uint8")

M = T((3, 4), low=-4.0, high=4.0)
LAYOUTS = [
    M,
    T((3, 4), strides="transposed"),
    T((3, 4), strides="sliced"),
    T((3, 4), strides="expanded"),
    T(()),
    T((0, 2)),
    T((20, 20), low=-6.0, high=6.0),
]
# Not differentiable, or beyond what exp can hold: values only.
EXTREME = T(
    values=[0.0, -0.0, 1e4, -1e4, 50.0, -50.0, math.inf, -math.inf, math.nan, 1e-30],
    requires_grad=False,
)

FINITE = T(values=[0.0, -0.0, 1e4, -1e4, 50.0, -50.0, math.nan, 1e-30], requires_grad=False)


def samples(*more: OpSample) -> list[OpSample]:
    return [*calls(*[(x,) for x in LAYOUTS], (EXTREME,)), *more]


def case(op: str, given: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": DTYPES, "errors": errors}
    return OpCase(op, given, torch=f"nn.functional.{op}", **{**settings, **options})


def each(*settings: dict[str, Any]) -> list[OpSample]:
    return [OpSample((M,), kwargs) for kwargs in settings]


def along(dim: int, *shape: int, **options: Any) -> OpSample:
    return OpSample((T(shape, **options), dim))


RANGE = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 4\)"
DIMS = [
    along(0, 3, 4),
    along(1, 3, 4),
    along(-1, 2, 3, 4),
    along(1, 2, 3, 4),
    along(0, 5),
    along(0),
    along(-1),
    along(1, 0, 3),
    along(1, 3, 4, strides="transposed"),
    OpSample((T(values=[[1e4, 0.0], [-1e4, -1e4]], requires_grad=False), 1)),
    OpSample((T(values=[[math.inf, 0.0], [-math.inf, 1.0]], requires_grad=False), 1)),
    OpSample((T(values=[[-math.inf, -math.inf], [math.nan, 1.0]], requires_grad=False), 1)),
]
IN_ANOTHER_DTYPE = [
    OpSample((T((2, 3), dtype="float16", requires_grad=False), 1), {"dtype": D("float32")}),
    OpSample((T((2, 3), dtype="float32", requires_grad=False), 1), {"dtype": D("float64")}),
    OpSample((T((2, 3), dtype="int64", requires_grad=False), 0), {"dtype": D("float32")}),
]

CASES = [
    case("relu", samples(), dtypes=NUMERIC),
    OpCase("Tensor.relu", calls((M,)), dtypes=(), inplace="relu_"),
    case("relu6", [*each({}), OpSample((EXTREME,))], dtypes=NUMERIC),
    case(
        "threshold",
        calls((M, 0.5, -1.0), (M, 0, 0), (EXTREME, 0.1, 20.0), (T((20, 20)), 0.25, 7.0)),
        dtypes=(*FLOATS, "int64", "int32"),
    ),
    case(
        "hardtanh",
        [*samples(), *each({"min_val": -0.5, "max_val": 2.0})],
        dtypes=FLOATS,
    ),
    case(
        "leaky_relu",
        samples(
            *each({"negative_slope": 0.3}, {"negative_slope": -0.5}, {"negative_slope": 2.0}),
            OpSample((EXTREME, 0.0)),
        ),
    ),
    case("elu", samples(*each({"alpha": 0.5}, {"alpha": 2}))),
    case("selu", samples()),
    case(
        "celu",
        samples(*each({"alpha": 0.5})),
        fails(RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU", M, 0),
    ),
    case(
        "gelu",
        # PyTorch's vectorised gelu gives nan for inf, so not the extreme ones.
        [
            *calls(*[(x,) for x in LAYOUTS], (FINITE,)),
            *each({"approximate": "tanh"}),
            OpSample((FINITE,), {"approximate": "tanh"}),
        ],
        OpError(
            OpSample((M,), {"approximate": "x"}),
            RuntimeError,
            "approximate argument must be either none or tanh",
        ),
        dtypes=(*FLOATS, "int64", "bool"),
    ),
    case("silu", samples(), dtypes=(*FLOATS, "int64", "bool")),
    case("mish", samples()),
    case("hardswish", samples()),
    case("hardsigmoid", samples()),
    case(
        "softplus",
        samples(*each({"beta": 2}, {"threshold": 1}, {"beta": 0.5, "threshold": 1.5})),
    ),
    case("logsigmoid", samples()),
    case(
        "glu",
        [along(0, 4, 3), along(-1, 2, 4), along(1, 2, 6, 2)],
        fails(
            RuntimeError,
            "Halving dimension must be even, but dimension 0 is size 3",
            T((3,)),
            0,
        ),
        fails(
            RuntimeError,
            "glu does not support scalars because halving size must be even",
            T(()),
            0,
        ),
    ),
    OpCase(
        "prelu",
        calls((T((2, 3, 4)), T((3,))), (T((2, 3)), T((1,))), (T((4,)), T((1,)))),
        dtypes=FLOATS,
    ),
    OpCase(
        "softmax",
        [*DIMS, *IN_ANOTHER_DTYPE],
        dtypes=(*FLOATS, "int64", "bool"),
        errors=[fails(IndexError, RANGE, T((2, 3)), 4)],
    ),
    OpCase("Tensor.softmax", [along(0, 3, 4)], dtypes=()),
    OpCase(
        "log_softmax",
        [*DIMS, *IN_ANOTHER_DTYPE],
        dtypes=(*FLOATS, "int64", "bool"),
        errors=[fails(IndexError, RANGE, T((2, 3)), 4)],
    ),
]
