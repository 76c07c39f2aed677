"""Elementwise operators: all operands are sharded the same way, except where they are broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned, alike, specs_in

__all__ = ["RULES", "STRUCTURES", "pointwise"]

# The core's tags for elementwise operators, including plugins'. They need no names here:
# operators without their own rule use `pointwise`.
STRUCTURES = ("unary", "binary", "binary_alpha", "elementwise")

# Operators that broadcast the same way.
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

# Linear in their first argument, so `Partial` sums can stay.
LINEAR = ("neg", "clone", "mul.Scalar", "div.Scalar", "conj_physical")
# Linear in all of their tensors together.
SUMS = ("add.Tensor", "sub.Tensor")
PENDING = (Partial("sum"), Partial("avg"))


def _cut(specs: Sequence[DTensorSpec], ndim: int, dim: int) -> Any:
    """The placement of a tensor if the result is sharded along `dim`; the tensor may be broadcast
    there."""

    def placement(spec: DTensorSpec) -> Placement:
        own = dim - (ndim - spec.ndim)
        return Replicate() if own < 0 or spec.shape[own] == 1 else Shard(own)

    return placement


def pointwise(*args: Any) -> list[Choice]:
    """Sharded along any dimension of the result."""
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
    """A cast between floating or complex dtypes can run before a sum."""
    spec, dtype = args[0], args[1]
    wide = (spec.dtype.is_floating_point or spec.dtype.is_complex) and (
        dtype.is_floating_point or dtype.is_complex
    )
    return _linear(*args) if wide and dtype.itemsize >= spec.dtype.itemsize else pointwise(*args)


def _factor(position: int, one: Placement, args: Sequence[Any]) -> list[Any]:
    """`Partial` in one argument, replicated in the others, which may be the same tensor."""
    others = aligned(args, lambda spec: Replicate())
    return [*others[:position], one, *others[position + 1 :]]


def _product(*args: Any) -> list[Choice]:
    found = pointwise(*args)
    for one in PENDING:
        found.append(([one], _factor(0, one, args)))
        found.append(([one], _factor(1, one, args)))
    return found


def _quotient(*args: Any) -> list[Choice]:
    return [*pointwise(*args), *(([one], _factor(0, one, args)) for one in PENDING)]


def _chosen(*args: Any) -> list[Choice]:
    """`where`: selects among summands as among the sums."""
    condition, values = args[0], args[1:]
    pending: list[Choice] = [([one], [Replicate(), *alike(values, one)]) for one in PENDING]
    return [*pointwise(condition, *values), *pending]


RULES: dict[str, Rule] = {
    **{name: Rule(pointwise) for name in OTHERS},
    **{name: Rule(_linear) for name in (*LINEAR, *SUMS)},
    "_to_copy": Rule(_cast),
    "mul.Tensor": Rule(_product),
    "div.Tensor": Rule(_quotient),
    "where.self": Rule(_chosen),
}
