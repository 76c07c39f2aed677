"""Operators on JAX's tracers with numbers that are tracers, too: optimizers' steps, arithmetic.

Numbers come in float64. Results of numbers alone stay float64, and are rounded to the dtype of the
arrays that they meet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax.numpy as jnp

import plugrad
from plugrad.plugins.tracing import resolved, tensor_of

Array = Any


class Number:
    """A number that changes from run to run: a tracer of float64."""

    def __init__(self, value: Array) -> None:
        self.value = value


def overload_of(name: str) -> Any:
    """The operator of a full name, "plugrad::mul.Tensor"."""
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(plugrad.ops, namespace), operator)
    return getattr(packet, overload or "default")


def _plain(number: Any, dtype: Any) -> Array:
    """A number in an array's dtype, after what is computed of numbers alone in float64."""
    return jnp.asarray(number.value if isinstance(number, Number) else number).astype(dtype)


def _wide(number: Any) -> Any:
    return number.value if isinstance(number, Number) else float(number)


def _put(target: Any, array: Array) -> None:
    target.copy_(tensor_of(array, target.dtype, target.device))


def _array(tensor: Any) -> Array:
    return resolved(tensor).array


def _binary(function: Callable[[Array, Array], Array], a: Any, number: Any, *rest: Any) -> Any:
    array = _array(a)
    if array.dtype.kind not in "fV":
        raise NotImplementedError(f"a number that changes, beside {array.dtype.name}")
    # add and sub have a factor after the number.
    factor = _wide(rest[0]) if rest else 1
    made = function(array, _plain(_wide(number) * factor, array.dtype))
    return tensor_of(made, a.dtype, a.device)


def _in_place(function: Callable[[Array, Array], Array], a: Any, number: Any, *rest: Any) -> Any:
    _put(a, _array(_binary(function, a, number, *rest)))
    return a


def _add_scaled(a: Any, b: Any, alpha: Any) -> Any:
    left, right = _array(a), _array(b)
    if left.dtype != right.dtype:
        raise NotImplementedError("two dtypes beside a number that changes")
    return tensor_of(left + right * _plain(alpha, right.dtype), a.dtype, a.device)


def _add_scaled_(a: Any, b: Any, alpha: Any) -> Any:
    _put(a, _array(_add_scaled(a, b, alpha)))
    return a


def _decayed(p: Array, g: Array, weight_decay: Any, maximize: bool) -> Array:
    g = -g if maximize else g
    if isinstance(weight_decay, Number):
        decay = _plain(weight_decay, p.dtype)
        return jnp.where(decay != 0, g + p * decay, g)
    return g + p * _plain(weight_decay, p.dtype) if weight_decay else g


def _update_sgd(
    parameters: Sequence[Any],
    grads: Sequence[Any],
    buffers: Sequence[Any],
    lr: Any,
    momentum: Any,
    dampening: Any,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
) -> None:
    for place, (parameter, grad) in enumerate(zip(parameters, grads, strict=True)):
        p = _array(parameter)
        g = _decayed(p, _array(grad), weight_decay, maximize)
        if buffers:
            v = _array(buffers[place]) * _plain(momentum, p.dtype)
            v = v + g * jnp.asarray(1 - _wide(dampening)).astype(p.dtype)
            _put(buffers[place], v)
            g = g + v * _plain(momentum, p.dtype) if nesterov else v
        _put(parameter, p - g * _plain(lr, p.dtype))


def _update_adam(
    parameters: Sequence[Any],
    grads: Sequence[Any],
    means: Sequence[Any],
    squares: Sequence[Any],
    largest: Sequence[Any],
    rates: Sequence[Any],
    epsilons: Sequence[Any],
    beta1: Any,
    beta2: Any,
    decay: Any,
    weight_decay: Any,
    maximize: bool,
) -> None:
    lists = (parameters, grads, means, squares, rates, epsilons)
    for place, (parameter, grad, mean, square, rate, epsilon) in enumerate(
        zip(*lists, strict=True)
    ):
        p = _array(parameter)
        dtype = p.dtype
        p = p * jnp.asarray(1 - _wide(decay)).astype(dtype)
        g = _decayed(p, _array(grad), weight_decay, maximize)
        m = _array(mean)
        m = m + (g - m) * jnp.asarray(1 - _wide(beta1)).astype(dtype)
        s = _array(square) * _plain(beta2, dtype)
        s = s + g * g * jnp.asarray(1 - _wide(beta2)).astype(dtype)
        _put(mean, m)
        _put(square, s)
        if largest:
            s = jnp.maximum(_array(largest[place]), s)
            _put(largest[place], s)
        _put(parameter, p - m * _plain(rate, dtype) / (jnp.sqrt(s) + _plain(epsilon, dtype)))


_ARITHMETIC: Final[dict[str, Callable[..., Array]]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
}  # fmt: skip
# By operator; they take plain numbers, too.
WITH_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "plugrad::_update_sgd": _update_sgd,
    "plugrad::_update_adam": _update_adam,
}


def _when_it_changes(name: str, with_number: Callable[..., Any]) -> Callable[..., Any]:
    """The operator itself for plain numbers."""
    plain = functools.partial(overload_of, name)

    def call(*args: Any) -> Any:
        if any(isinstance(arg, Number) for arg in args):
            return with_number(*args)
        return plain().call(args)

    return call


for _name, _function in _ARITHMETIC.items():
    for _suffix, _kind in (("", _binary), ("_", _in_place)):
        _full = f"plugrad::{_name}{_suffix}.Scalar"
        WITH_NUMBERS[_full] = _when_it_changes(_full, functools.partial(_kind, _function))
for _name, _scaled in (("add", _add_scaled), ("add_", _add_scaled_)):
    _full = f"plugrad::{_name}.Tensor"
    WITH_NUMBERS[_full] = _when_it_changes(_full, _scaled)
