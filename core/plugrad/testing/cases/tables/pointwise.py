"""Samples of elementwise operators: arithmetic, comparison, logic, powers, trigonometry."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    OpCase,
    OpError,
    OpSample,
    T,
)
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, REALS

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, float("inf"), float("-inf"), float("nan")]


def one(low: float, high: float) -> list[OpSample]:
    """A matrix that is not contiguous, a number, and nothing at all."""
    return [
        OpSample((T((3, 4), low, high, strides="transposed"),), name="matrix"),
        OpSample((T((), low, high),), name="0-dim"),
        OpSample((T((0, 3), low, high),), name="empty"),
    ]


def two(
    left: tuple[float, float] = (-2, 2),
    right: tuple[float, float] = (-2, 2),
    numbers: tuple[Any, ...] = (),
) -> list[OpSample]:
    """Shapes and layouts of two tensors that broadcast, then a tensor and numbers."""

    def pair(a: tuple[int, ...], b: tuple[int, ...], name: str, strides: str) -> OpSample:
        return OpSample((T(a, *left, strides=strides), T(b, *right)), name=name)

    return [
        pair((3, 4), (3, 4), "same", "contiguous"),
        pair((3, 4), (4,), "row", "transposed"),
        pair((2, 1), (1, 3), "outer", "contiguous"),
        pair((), (3,), "0-dim", "contiguous"),
        pair((), (), "both 0-dim", "contiguous"),
        pair((0, 3), (3,), "empty", "contiguous"),
        pair((2, 3), (2, 3), "sliced", "sliced"),
        *(OpSample((T((2, 3), *left), number), name=f"number {number}") for number in numbers),
    ]


def unary(op: str, low: float = -2.0, high: float = 2.0, **options: Any) -> OpCase:
    return OpCase(op, one(low, high), inplace=f"{op}_", **options)


def analytic(op: str, low: float = -2.0, high: float = 2.0, **options: Any) -> OpCase:
    """Differentiable on the complex plane too."""
    return unary(op, low, high, grad_dtypes=REAL_AND_COMPLEX, **options)


def stepwise(op: str, **options: Any) -> OpCase:
    """Constant between its steps: the gradient is zero, and there is no second one."""
    return unary(op, second=False, **options)


def test_of(op: str, **options: Any) -> OpCase:
    samples = [*one(-2, 2), OpSample((T(values=SPECIAL),), name="special")]
    return OpCase(op, samples, gradient=False, **options)


def comparison(op: str, **options: Any) -> OpCase:
    tie = OpSample((T(values=[1.0, 2.0, 3.0]), T(values=[2.0, 2.0, 2.0])), name="tie")
    samples = [*two(numbers=(1, 0.5)), tie]
    return OpCase(op, samples, gradient=False, inplace=f"{op}_", errors=[MISMATCH], **options)


def logical(op: str) -> OpCase:
    zeros = OpSample((T(values=[0, 0, 1, 1]), T(values=[0, 1, 0, 1])), name="table")
    return OpCase(op, [*two(), zeros], gradient=False, inplace=f"{op}_")


def bits(op: str, *numbers: int, low: float = -4, high: float = 5) -> OpCase:
    samples = [
        OpSample((T((3, 4), low, high, "int64"), T((4,), 0, 5, "int64")), name="int64"),
        OpSample((T((3,), 0, 5, "uint8"), T((3,), 0, 5, "int64")), name="promoted"),
        *(OpSample((T((3,), low, high, "int32"), number)) for number in numbers),
    ]
    error = OpError(
        OpSample((T((2,)), T((2,)))), NotImplementedError, "not implemented for 'Double'"
    )
    return OpCase(op, samples, dtypes=(), gradient=False, inplace=f"{op}_", errors=[error])


MISMATCH = OpError(
    OpSample((T((3,)), T((4,)))),
    RuntimeError,
    r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton",
)

UNARY = [
    unary("neg", grad_dtypes=REAL_AND_COMPLEX),
    OpCase("negative", one(-2, 2)),
    OpCase("positive", one(-2, 2)),
    unary("abs"),
    OpCase("absolute", one(-2, 2)),
    stepwise("sign"),
    unary("sgn", grad_dtypes=("complex128",)),
    stepwise("ceil"),
    stepwise("floor"),
    stepwise("trunc"),
    stepwise("round"),
    OpCase(
        "round",
        [OpSample((T((5,), -9, 9),), {"decimals": n}, f"{n} decimals") for n in (0, 2, -1)],
        dtypes=("float32",),
        second=False,
    ),
    unary("frac", dtypes=REALS),
    analytic("exp"),
    unary("exp2", grad_dtypes=REAL_AND_COMPLEX),
    analytic("expm1"),
    analytic("log", 0.1, 3.0),
    analytic("log2", 0.1, 3.0),
    analytic("log10", 0.1, 3.0),
    analytic("log1p", -0.5, 3.0),
    analytic("sqrt", 0.1, 3.0),
    analytic("rsqrt", 0.2, 3.0),
    analytic("square"),
    analytic("reciprocal", 0.3, 3.0),
    analytic("sin"),
    analytic("cos"),
    analytic("tan", -1.2, 1.2),
    analytic("asin", -0.9, 0.9),
    analytic("acos", -0.9, 0.9),
    analytic("atan", -0.9, 0.9),
    analytic("sinh"),
    analytic("cosh"),
    analytic("tanh", -1.2, 1.2),
    analytic("asinh", -0.9, 0.9),
    analytic("acosh", 1.2, 3.0),
    analytic("atanh", -0.9, 0.9),
    analytic("sigmoid"),
    unary("erf"),
    unary("erfc"),
    # PyTorch has no gradient for complex numbers here.
    unary("nan_to_num", wider=("complex64", "complex128")),
    OpCase(
        "nan_to_num",
        [OpSample((T(values=SPECIAL),), {"nan": 1.0, "posinf": 2.0, "neginf": -2.0})],
        dtypes=FLOATS,
        gradient=False,
    ),
    OpCase("angle", one(-2, 2), second=False),
    OpCase("conj", one(-2, 2), grad_dtypes=REAL_AND_COMPLEX, view=True),
    OpCase("_conj", [OpSample((T((2, 3), dtype="complex128"),))], dtypes=(), view=True),
    OpCase(
        "_neg_view", one(-2, 2), dtypes=(*FLOATS, *COMPLEX), grad_dtypes=REAL_AND_COMPLEX, view=True
    ),
    OpCase("resolve_conj", one(-2, 2), grad_dtypes=REAL_AND_COMPLEX, view=True),
    OpCase("resolve_neg", one(-2, 2), grad_dtypes=REAL_AND_COMPLEX, view=True),
    OpCase(
        "real",
        [OpSample((T((2, 3), dtype="complex128"),)), OpSample((T((2, 3)),))],
        dtypes=("complex64",),
        view=True,
    ),
    OpCase(
        "imag",
        [OpSample((T((2, 3), dtype="complex128"),))],
        dtypes=(),
        view=True,
        errors=[
            OpError(
                OpSample((T((2,)),)),
                RuntimeError,
                "imag is not implemented for tensors with non-complex dtypes.",
            )
        ],
    ),
    test_of("isnan"),
    test_of("isinf"),
    test_of("isfinite"),
    test_of("logical_not", inplace="logical_not_"),
    OpCase(
        "bitwise_not",
        [OpSample((T((3,), -5, 5, "int64"),)), OpSample((T((3,), dtype="bool"),))],
        dtypes=INTEGERS,
        gradient=False,
    ),
]

ALPHA = [
    OpSample((T((2, 3)), T((3,))), {"alpha": 3}, "alpha"),
    OpSample((T((2, 3)), 2), {"alpha": 3}, "number with alpha"),
]
MODES = [
    OpSample((T((2, 3), -9, 9), T((3,), 1, 4)), {"rounding_mode": mode}, f"mode {mode}")
    for mode in (None, "trunc", "floor")
]
MODES.append(OpSample((T((2, 3), -9, 9), 2), {"rounding_mode": "floor"}, "number, floor"))

BINARY = [
    OpCase(
        "add",
        [*two(numbers=(2, 0.5, True)), *ALPHA],
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="add_",
        errors=[MISMATCH],
    ),
    OpCase(
        "sub",
        [*two(numbers=(2, 0.5)), *ALPHA],
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="sub_",
        errors=[
            MISMATCH,
            OpError(
                OpSample((T((2,), dtype="bool"), T((2,), dtype="bool"))),
                RuntimeError,
                "Subtraction, the `-` operator",
            ),
        ],
    ),
    OpCase("subtract", two(numbers=(2,))),
    OpCase("rsub", [*two(numbers=(2, 0.5)), *ALPHA]),
    OpCase(
        "mul",
        two(numbers=(2, 0.5, True)),
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="mul_",
        errors=[MISMATCH],
    ),
    OpCase("multiply", two(numbers=(2,))),
    OpCase(
        "div",
        two((-2, 2), (1, 3), numbers=(2, 0.5)),
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="div_",
        errors=[MISMATCH],
    ),
    OpCase(
        "div",
        MODES[1:],
        second=False,
        errors=[
            OpError(
                OpSample((T((2,)), 2), {"rounding_mode": "up"}),
                RuntimeError,
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
            ),
            OpError(
                OpSample((T((2,), 1, 5, "int64"), 0), {"rounding_mode": "floor"}),
                RuntimeError,
                "ZeroDivisionError",
            ),
        ],
    ),
    OpCase("div", MODES[:1]),
    OpCase("divide", [*two((-2, 2), (1, 3), numbers=(2,)), *MODES[:1]]),
    OpCase("true_divide", two((-2, 2), (1, 3), numbers=(2,))),
    OpCase(
        "floor_divide",
        two((-9, 9), (1, 4), numbers=(2, 0.7, -3)),
        gradient=False,
        inplace="floor_divide_",
        errors=[
            OpError(
                OpSample((T((2,), 1, 5, "int64"), T(values=[1, 0], dtype="int64"))),
                RuntimeError,
                "ZeroDivisionError",
            )
        ],
    ),
    OpCase(
        "remainder",
        two((-9, 9), (1.1, 4), numbers=(3, 0.7, -3)),
        inplace="remainder_",
        second=False,
    ),
    OpCase("fmod", two((-9, 9), (1.1, 4), numbers=(3, 0.7)), inplace="fmod_", second=False),
    OpCase(
        "remainder",
        [OpSample((7, T((3,), 1.1, 4)), name="number first")],
        gradient=False,
    ),
    OpCase(
        "pow",
        [
            *two((0.5, 2), (0, 3), numbers=(0, 1, 2, 3, 0.5)),
            OpSample((T((2, 3), 0.5, 2), -1.5), name="negative power"),
            OpSample((2, T((3,), 0, 3)), name="number first"),
            OpSample((1.5, T((3,), 0, 3)), name="float first"),
        ],
        grad_dtypes=REAL_AND_COMPLEX,
        errors=[
            OpError(
                OpSample((T((2,), 1, 5, "int64"), -1)),
                RuntimeError,
                "Integers to negative integer powers are not allowed.",
            )
        ],
    ),
    OpCase("atan2", two(), dtypes=(*REALS, "bool"), inplace="atan2_"),
    OpCase("hypot", two((0.2, 2), (0.2, 2)), dtypes=FLOATS, inplace="hypot_"),
    OpCase(
        "logaddexp",
        two(),
        dtypes=(*FLOATS, "complex64", "complex128"),
        grad_dtypes=("float64", "complex128"),
    ),
    OpCase("maximum", two(), inplace=None),
    OpCase("minimum", two()),
    OpCase("fmax", two(), dtypes=(*REALS, "bool")),
    OpCase("fmin", two(), dtypes=(*REALS, "bool")),
]

COMPARISON = [
    *(comparison(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(
        OpCase(op, two(numbers=(1,)), gradient=False)
        for op in ("greater", "greater_equal", "less", "less_equal", "not_equal")
    ),
    *(logical(op) for op in ("logical_and", "logical_or", "logical_xor")),
    bits("bitwise_and", 3, -1),
    bits("bitwise_or", 3, -1),
    bits("bitwise_xor", 3, -1),
    bits("bitwise_left_shift", 1, 2),
    bits("bitwise_right_shift", 1, 2),
    OpCase(
        "isclose",
        [
            OpSample((T(values=[1.0, 1.0, 0.0]), T(values=[1.0 + 1e-7, 1.1, 1e-9]))),
            OpSample((T(values=SPECIAL), T(values=SPECIAL)), {"equal_nan": True}, "equal nan"),
            OpSample((T(values=SPECIAL), T(values=SPECIAL)), {"rtol": 0.0, "atol": 0.5}),
        ],
        dtypes=("float32", "int64"),
        gradient=False,
        errors=[
            OpError(
                OpSample((T((2,)), T((2,), dtype="float32"))),
                RuntimeError,
                "Double did not match Float",
            )
        ],
    ),
    OpCase(
        "allclose",
        [
            OpSample((T(values=[1.0]), T(values=[1.0 + 1e-7]))),
            OpSample((T(values=[1.0]), T(values=[1.1]))),
        ],
        dtypes=("float32",),
        gradient=False,
    ),
    OpCase(
        "equal",
        [
            OpSample((T(values=[1, 2]), T(values=[1, 2])), name="equal"),
            OpSample((T(values=[1, 2]), T(values=[1, 3])), name="different"),
            OpSample((T(values=[1, 2]), T(values=[1])), name="other shape"),
        ],
        gradient=False,
    ),
]

CONDITION = T((2, 3), dtype="bool")
TERNARY = [
    OpCase(
        "clamp",
        [
            OpSample((T((3, 4)), -0.5, 0.5), name="both"),
            OpSample((T((3, 4)),), {"min": 0}, "min"),
            OpSample((T((3, 4)),), {"max": 0.5}, "max"),
            OpSample((T((3, 4)), 1, -1), name="crossed"),
            OpSample((T((3, 4)), T((4,), -1, 0), T((3, 1), 0, 1)), name="tensors"),
            OpSample((T((3, 4)),), {"min": T((4,))}, "min tensor"),
            OpSample((T((3, 4)),), {"max": T(())}, "max 0-dim"),
            OpSample((T((0, 3)), -1, 1), name="empty"),
        ],
        errors=[
            OpError(
                OpSample((T((2,)),)),
                RuntimeError,
                "At least one of 'min' or 'max' must not be None",
            )
        ],
    ),
    OpCase("clip", [OpSample((T((3, 4)), -0.5, 0.5)), OpSample((T((3,)), T((3,))))]),
    OpCase("clamp_min", [OpSample((T((3,)), 0.5)), OpSample((T((2, 3)), T((3,))))]),
    OpCase("clamp_max", [OpSample((T((3,)), 0.5)), OpSample((T((2, 3)), T((3,))))]),
    OpCase(
        "where",
        [
            OpSample((CONDITION, T((2, 3)), T((2, 3))), name="same"),
            OpSample((CONDITION, T((3,)), T((2, 1))), name="broadcast"),
            OpSample((CONDITION, T((2, 3)), 0.5), name="number last"),
            OpSample((CONDITION, 2, T((2, 3))), name="number first"),
            OpSample((CONDITION, T(()), T((3,))), name="0-dim"),
            OpSample((T((0, 3), dtype="bool"), T((3,)), T(())), name="empty"),
        ],
        grad_dtypes=REAL_AND_COMPLEX,
        errors=[
            OpError(
                OpSample((T((2,), dtype="int64"), T((2,)), T((2,)))),
                RuntimeError,
                "where expected condition to be a boolean tensor, but got a tensor with dtype Long",
            )
        ],
    ),
    OpCase(
        "where",
        [OpSample((CONDITION, 1, 2)), OpSample((CONDITION, 1.5, 2)), OpSample((CONDITION,))],
        gradient=False,
    ),
    OpCase(
        "lerp",
        [
            OpSample((T((2, 3)), T((3,)), 0.3), name="near"),
            OpSample((T((2, 3)), T((2, 3)), 0.8), name="far"),
            OpSample((T((2, 3)), T((2, 3)), T((2, 3), 0, 1)), name="tensor weight"),
        ],
        inplace="lerp_",
        errors=[
            OpError(
                OpSample((T((2,)), T((2,), dtype="float32"), 0.5)),
                RuntimeError,
                "expected dtype double for `end` but got dtype float",
            )
        ],
    ),
    OpCase(
        "addcmul",
        [
            OpSample((T((2, 3)), T((2, 1)), T((3,))), name="plain"),
            OpSample((T((2, 3)), T((2, 3)), T((2, 3))), {"value": 2}, "value"),
        ],
        inplace="addcmul_",
        grad_dtypes=REAL_AND_COMPLEX,
    ),
    OpCase(
        "addcdiv",
        [
            OpSample((T((2, 3)), T((2, 1)), T((3,), 1, 3)), name="plain"),
            OpSample((T((2, 3)), T((2, 3)), T((2, 3), 1, 3)), {"value": 2}, "value"),
        ],
        inplace="addcdiv_",
        grad_dtypes=REAL_AND_COMPLEX,
        errors=[
            OpError(
                OpSample((T((2,)), T((2,), 1, 3, "int64"), T((2,), 1, 3, "int64"))),
                RuntimeError,
                "Integer division with addcdiv is no longer supported",
            )
        ],
    ),
]


def dunder(name: str, *others: Any, low: float = 0.5, **options: Any) -> OpCase:
    samples = [OpSample((T((2, 3), low, 3), other)) for other in others]
    return OpCase(f"Tensor.__{name}__", samples, **options)


POSITIVE = T((3,), 0.5, 3)
WHOLE = T((3,), 1, 4, "int64")
DUNDERS = [
    *(dunder(name, POSITIVE, 2, 1.5) for name in ("add", "sub", "mul", "truediv", "pow")),
    *(dunder(name, POSITIVE, 2, second=False) for name in ("mod",)),
    *(dunder(name, POSITIVE, 2, gradient=False) for name in ("floordiv", "eq", "ne", "lt")),
    *(dunder(name, POSITIVE, 2, gradient=False) for name in ("le", "gt", "ge")),
    *(dunder(name, 2, 1.5) for name in ("radd", "rsub", "rmul", "rtruediv", "rpow")),
    dunder("rmod", 7, gradient=False),
    dunder("rfloordiv", 7, gradient=False, dtypes=REALS),
    OpCase("Tensor.__neg__", one(-2, 2)),
    OpCase("Tensor.__pos__", one(-2, 2)),
    OpCase("Tensor.__abs__", one(-2, 2)),
    OpCase(
        "Tensor.__invert__",
        [OpSample((WHOLE,)), OpSample((T((3,), dtype="bool"),))],
        dtypes=(),
        gradient=False,
    ),
    *(
        OpCase(
            f"Tensor.__{name}__",
            [OpSample((WHOLE, 3)), *([] if name[0] == "r" and name != "rshift" else [both])],
            dtypes=(),
            gradient=False,
        )
        for both in [OpSample((WHOLE, T((2, 3), 1, 4, "int64")))]
        for name in ("and", "or", "xor", "lshift", "rshift", "rand", "ror", "rxor", "rlshift")
    ),
]

MEMBERSHIP = [
    OpCase(
        "isin",
        [
            OpSample((T(values=[[1, 2], [3, 4]]), T(values=[2, 3]))),
            OpSample((T(values=[1.0, 2.0]), T(values=[[2.0], [5.0]])), {"invert": True}),
            OpSample((T(values=2), T(values=[2, 3]))),
            OpSample((T((2, 2)), T((0,)))),
        ],
        dtypes=("int64", "float32"),
        gradient=False,
    )
]

CASES = [*UNARY, *BINARY, *COMPARISON, *TERNARY, *DUNDERS, *MEMBERSHIP]
