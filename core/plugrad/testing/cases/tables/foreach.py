"""Samples of operators of whole lists of tensors."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpSample, T
from plugrad.testing.cases.inputs import call, fails

# In the domain of every function.
PART = T((2,), 0.2, 0.8)
LIST = [T((2, 2), 0.2, 0.8), PART]
OTHER = [T((2, 2), 0.3, 0.9), PART]
NUMBERS = [2.0, 0.5]
SINGLE = T((), 0.5, 1.5)
PAIR = T(values=[2.0, 0.5], requires_grad=False)
UNTRACKED = [T((2, 2), 0.2, 0.8, requires_grad=False), T((2,), 0.2, 0.8, requires_grad=False)]
UNEQUAL = "Tensor lists must have the same number of tensors, got 2 and 1"

UNARY = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp"),
    *("expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal"),
    *("round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)


def _case(op: str, *samples: OpSample, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": (), "gradient": False}
    return OpCase(f"_foreach_{op}", samples, **{**settings, **options})


CASES = [
    *(_case(name, call(LIST)) for name in UNARY),
    *(
        _case(
            name,
            call(LIST, 2.0),
            call(LIST, OTHER),
            call(LIST, NUMBERS),
            errors=[fails(RuntimeError, UNEQUAL, LIST, [PART])],
        )
        for name in ("sub", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
    ),
    *(
        _case(
            name,
            call(LIST, 2.0),
            call(LIST, OTHER),
            call(LIST, NUMBERS),
            call(LIST, SINGLE),
            errors=[
                fails(RuntimeError, "same number of elements as scalar list", LIST, [1.0]),
                fails(RuntimeError, "scalar tensor expected to be 0 dim", LIST, PAIR),
                fails(RuntimeError, "must have at least one tensor", [], 1.0),
            ],
        )
        for name in ("mul", "div")
    ),
    _case("add", call(LIST, 2.0), call(LIST, NUMBERS), call(LIST, SINGLE, alpha=2)),
    _case("add", call(LIST, OTHER, alpha=3), dtypes=("float32",), gradient=True),
    _case("pow", call(2.0, LIST)),
    _case("lerp", call(LIST, OTHER, 0.3), call(LIST, OTHER, OTHER), call(LIST, OTHER, NUMBERS)),
    *(
        _case(
            name,
            call(LIST, OTHER, LIST),
            call(LIST, OTHER, LIST, 2.0),
            call(LIST, OTHER, LIST, NUMBERS),
            call(LIST, OTHER, LIST, PAIR),
        )
        for name in ("addcmul", "addcdiv")
    ),
    _case("norm", call(LIST), call(LIST, 1), gradient=True),
    _case("powsum", call(LIST, 3)),
    _case("max", call(LIST)),
    _case("mm", call([T((2, 3))], [T((3, 1))])),
    _case("clone", call(LIST)),
    _case("copy_", call(UNTRACKED, OTHER)),
    _case("zero_", call(UNTRACKED)),
    _case("mul", call(UNTRACKED, 2.0)),
    _case("lerp_", call(UNTRACKED, UNTRACKED, 0.3)),
]
