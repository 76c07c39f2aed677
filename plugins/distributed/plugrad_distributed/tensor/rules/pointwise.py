"""Elementwise operators: all operands are cut alike, where they are not broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned, alike, specs_in

__all__ = ["RULES", "STRUCTURES", "pointwise"]

# The core's words for elementwise operators, those that it loads on demand too.
STRUCTURES = ("unary", "binary", "binary_alpha", "elementwise")

# The core's elementwise operators.
UNARY = (
    *("neg", "abs", "sign", "sgn", "ceil", "floor", "trunc", "round", "frac", "exp", "exp2"),
    *("expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos"),
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("sigmoid", "erf", "erfc", "conj_physical", "isnan", "isinf", "isfinite", "logical_not"),
    *("bitwise_not", "sinc", "signbit", "relu", "hardsigmoid", "hardswish"),
)

BINARY = (
    *("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "mul.Tensor", "mul.Scalar"),
    *("div.Tensor", "div.Scalar", "floor_divide", "floor_divide.Scalar"),
    *("floor_divide.Scalar_Tensor", "remainder.Tensor", "remainder.Scalar"),
    *("remainder.Scalar_Tensor", "fmod.Tensor", "fmod.Scalar", "pow.Tensor_Scalar"),
    *("pow.Tensor_Tensor", "pow.Scalar", "atan2", "hypot", "logaddexp", "maximum", "minimum"),
    *("fmax", "fmin", "logaddexp2", "xlogy.Tensor", "xlogy.Scalar_Other"),
    *("xlogy.Scalar_Self", "copysign.Tensor", "copysign.Scalar", "eq.Tensor", "eq.Scalar"),
    *("ne.Tensor", "ne.Scalar", "lt.Tensor", "lt.Scalar", "le.Tensor", "le.Scalar"),
    *("gt.Tensor", "gt.Scalar", "ge.Tensor", "ge.Scalar", "logical_and", "logical_or"),
    *("logical_xor", "bitwise_and.Tensor", "bitwise_and.Scalar", "bitwise_and.Scalar_Tensor"),
    *("bitwise_or.Tensor", "bitwise_or.Scalar", "bitwise_or.Scalar_Tensor"),
    *("bitwise_xor.Tensor", "bitwise_xor.Scalar", "bitwise_xor.Scalar_Tensor"),
    *("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar"),
    *("bitwise_left_shift.Scalar_Tensor", "bitwise_right_shift.Tensor"),
    *("bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor", "heaviside"),
    *("gcd", "lcm", "nextafter"),
)

# What broadcasts as they do.
OTHERS = (
    *("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"),
    *("masked_fill.Scalar", "masked_fill.Tensor", "addcmul", "addcdiv", "complex"),
    *("clamp", "clamp.Tensor", "clamp_min", "clamp_min.Tensor", "clamp_max", "clamp_max.Tensor"),
    *("lerp.Scalar", "lerp.Tensor", "round.decimals", "angle", "nan_to_num", "logit"),
    *("div.Tensor_mode", "div.Scalar_mode", "rsub.Scalar"),
    *("threshold", "threshold_backward", "hardtanh", "hardtanh_backward"),
    *("leaky_relu", "leaky_relu_backward", "elu", "elu_backward", "gelu", "gelu_backward"),
    *("silu", "silu_backward", "tanh_backward", "sigmoid_backward"),
    *("softplus", "softplus_backward", "log_sigmoid", "native_dropout_backward"),
    *("clone", "_to_copy"),
)

# Linear in their first argument, so that what is still to be summed can wait.
LINEAR = ("neg", "clone", "mul.Scalar", "div.Scalar", "conj_physical")
# Linear in all of their tensors together.
SUMS = ("add.Tensor", "sub.Tensor")
PENDING = (Partial("sum"), Partial("avg"))


def _cut(specs: Sequence[DTensorSpec], ndim: int, dim: int) -> Any:
    """How a tensor is cut where the result is cut along `dim`; it may be broadcast there."""

    def placement(spec: DTensorSpec) -> Placement:
        own = dim - (ndim - spec.ndim)
        return Replicate() if own < 0 or spec.shape[own] == 1 else Shard(own)

    return placement


def pointwise(*args: Any) -> list[Choice]:
    """Cut along any dimension of the result."""
    specs = specs_in(args)
    ndim = max(spec.ndim for spec in specs)
    found: list[Choice] = []
    for dim in range(ndim):
        inputs = aligned(args, _cut(specs, ndim, dim))
        if any(isinstance(one, Shard) for one in _flat(inputs)):
            found.append(([Shard(dim)], inputs))
    return found


def _flat(inputs: Sequence[Any]) -> list[Any]:
    return [item for one in inputs for item in (one if isinstance(one, list) else [one])]


def _linear(*args: Any) -> list[Choice]:
    pending: list[Choice] = [([one], alike(args, one)) for one in PENDING]
    return [*pointwise(*args), *pending]


def _cast(*args: Any) -> list[Choice]:
    """A cast between floating or complex dtypes may come before a sum."""
    spec, dtype = args[0], args[1]
    wide = (spec.dtype.is_floating_point or spec.dtype.is_complex) and (
        dtype.is_floating_point or dtype.is_complex
    )
    return _linear(*args) if wide and dtype.itemsize >= spec.dtype.itemsize else pointwise(*args)


def _factor(position: int, one: Placement, args: Sequence[Any]) -> list[Any]:
    """Pending in one argument, replicated in the others."""
    chosen = args[position]
    return aligned(args, lambda spec: one if spec is chosen else Replicate())


def _product(*args: Any) -> list[Choice]:
    found = pointwise(*args)
    for one in PENDING:
        found.append(([one], _factor(0, one, args)))
        found.append(([one], _factor(1, one, args)))
    return found


def _quotient(*args: Any) -> list[Choice]:
    return [*pointwise(*args), *(([one], _factor(0, one, args)) for one in PENDING)]


def _chosen(*args: Any) -> list[Choice]:
    """`where`: summands are chosen among as the sums are."""
    condition, values = args[0], args[1:]
    pending: list[Choice] = [([one], [Replicate(), *alike(values, one)]) for one in PENDING]
    return [*pointwise(condition, *values), *pending]


RULES: dict[str, Rule] = {
    **{name: Rule(pointwise) for name in (*UNARY, *BINARY, *OTHERS)},
    **{name: Rule(_linear) for name in (*LINEAR, *SUMS)},
    "_to_copy": Rule(_cast),
    "mul.Tensor": Rule(_product),
    "div.Tensor": Rule(_quotient),
    "where.self": Rule(_chosen),
}
