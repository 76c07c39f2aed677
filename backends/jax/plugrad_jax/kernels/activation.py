"""Kernels of activation functions and their gradients, each one program.

Their parameters are part of the program. 16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
import weakref
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import not_implemented
from plugrad_jax.kernels.programs import (
    Array,
    Kernel,
    constant,
    in_float32,
    is_narrow,
    program,
    widen,
)

_SQRT_HALF: Final = math.sqrt(0.5)
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)
_GELU_SCALE: Final = math.sqrt(2.0 / math.pi)
_GELU_CUBIC: Final = 0.044715


def _floating(name: str, function: Kernel) -> Kernel:
    """A function of real floating dtypes: others raise in PyTorch's words, 16 bits are widened."""
    wide = in_float32(function)

    def checked(a: Array, *rest: Any) -> Any:
        if a.dtype.kind not in "fV":
            raise not_implemented(name, a.dtype)
        return wide(a, *rest)

    return checked


def _relu(a: Array) -> Array:
    if a.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if a.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return jnp.maximum(a, constant(0, a))


def _threshold(a: Array, limit: Any, value: Any) -> Array:
    if a.dtype.kind in "bc":
        raise not_implemented("threshold_cpu", a.dtype)
    return jnp.where(a <= constant(limit, a), constant(value, a), a)


def _threshold_backward(grad: Array, x: Array, limit: Any) -> Array:
    return jnp.where(x <= constant(limit, x), constant(0, grad), grad)


def _hardtanh(a: Array, low: Any, high: Any) -> Array:
    return jnp.minimum(jnp.maximum(a, constant(low, a)), constant(high, a))


def _hardtanh_backward(grad: Array, x: Array, low: Any, high: Any) -> Array:
    outside = (x <= constant(low, x)) | (x >= constant(high, x))
    return jnp.where(outside, constant(0, grad), grad)


def _leaky_relu(a: Array, slope: Any) -> Array:
    return jnp.where(a > 0, a, a * constant(slope, a))


def _leaky_relu_backward(grad: Array, x: Array, slope: Any, self_is_result: bool) -> Array:
    return jnp.where(x > 0, grad, grad * constant(slope, grad))


def _elu(a: Array, alpha: Any, scale: Any, input_scale: Any) -> Array:
    negative = jnp.minimum(a, constant(0, a)) * constant(input_scale, a)
    return jnp.where(
        a > 0, a * constant(scale, a), jnp.expm1(negative) * constant(alpha * scale, a)
    )


def _elu_backward(
    grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Array
) -> Array:
    factor = constant(alpha * scale, x)
    if is_result:
        slope = x + factor
    else:
        slope = jnp.exp(jnp.minimum(x * constant(input_scale, x), constant(0, x))) * factor
    return grad * jnp.where(x <= 0, slope * constant(input_scale, x), constant(scale, x))


def _normal_cdf(x: Array) -> Array:
    return (lax.erf(x * constant(_SQRT_HALF, x)) + constant(1, x)) * constant(0.5, x)


def _gelu_tanh(x: Array) -> Array:
    inner = x * x * constant(_GELU_CUBIC * _GELU_SCALE, x) + constant(_GELU_SCALE, x)
    return jnp.tanh(inner * x)


def _gelu(x: Array, approximate: str) -> Array:
    if approximate == "none":
        return _normal_cdf(x) * x
    return (_gelu_tanh(x) + constant(1, x)) * constant(0.5, x) * x


def _gelu_backward(grad: Array, x: Array, approximate: str) -> Array:
    if approximate == "none":
        density = jnp.exp(x * x * constant(-0.5, x)) * constant(_DENSITY, x)
        return (density * x + _normal_cdf(x)) * grad
    one, t = constant(1, x), _gelu_tanh(x)
    slope = x * x * constant(3 * _GELU_CUBIC * _GELU_SCALE, x) + constant(_GELU_SCALE, x)
    return (slope * x * (one - t * t) + t + one) * constant(0.5, x) * grad


def _silu(x: Array) -> Array:
    return lax.logistic(x) * x


def _tanh_backward(grad: Array, y: Array) -> Array:
    return (constant(1, y) - y * y) * grad


def _sigmoid_backward(grad: Array, y: Array) -> Array:
    return (constant(1, y) - y) * y * grad


def _silu_backward(grad: Array, x: Array) -> Array:
    one, s = constant(1, x), lax.logistic(x)
    return ((one - s) * x + one) * s * grad


def _softplus(x: Array, beta: Any, limit: Any) -> Array:
    scaled = x * constant(beta, x)
    smooth = jnp.log1p(jnp.exp(scaled)) / constant(beta, x)
    return jnp.where(scaled > constant(limit, x), x, smooth)


def _softplus_backward(grad: Array, x: Array, beta: Any, limit: Any) -> Array:
    scaled = x * constant(beta, x)
    return jnp.where(scaled > constant(limit, x), grad, lax.logistic(scaled) * grad)


def _log_sigmoid(x: Array) -> Array:
    return jnp.minimum(x, constant(0, x)) - jnp.log1p(jnp.exp(-jnp.abs(x)))


def _exponentials(a: Array, dim: int) -> tuple[Array, Array, Array]:
    """a - max, its exponential, and the sum of that, along `dim`."""
    shifted = a - jnp.max(a, dim, keepdims=True)
    exponentials = jnp.exp(shifted)
    return shifted, exponentials, jnp.sum(exponentials, dim, keepdims=True)


def _softmax_of(a: Array, dim: int) -> Array:
    _, exponentials, total = _exponentials(a, dim)
    return exponentials / total


def _log_softmax_of(a: Array, dim: int) -> Array:
    shifted, _, total = _exponentials(a, dim)
    return shifted - jnp.log(total)


def _along(function: Kernel) -> Kernel:
    """A softmax kernel that handles empty, 0-dim and 16-bit arrays."""

    def along(a: Array, dim: int, half_to_float: bool) -> Array:
        wide = widen(a)
        if a.size == 0:
            out = wide
        elif a.ndim == 0:
            out = function(wide.reshape(1), 0).reshape(())
        else:
            out = function(wide, dim)
        return out if half_to_float else out.astype(a.dtype)

    return program(along, 1, 2)


def _softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    grad, output = widen(grad), widen(output)
    if output.ndim == 0:
        return (output * 0.0).astype(input_dtype)
    product = grad * output
    return (product - output * jnp.sum(product, dim, keepdims=True)).astype(input_dtype)


def _log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    grad, output = widen(grad), widen(output)
    if output.ndim == 0:
        return (output * 0.0).astype(input_dtype)
    return (grad - jnp.exp(output) * jnp.sum(grad, dim, keepdims=True)).astype(input_dtype)


_log_softmax_program: Final = _along(_log_softmax_of)
_log_softmax_backward_program: Final = program(_log_softmax_backward, 2, 3)

# For each log_softmax that is being traced, by the id of the result: the result, the exponentials
# and their sums. An entry is removed with its result.
_traced: Final[dict[int, tuple[weakref.ref[Any], Array, Array]]] = {}


def log_softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    """In a trace it leaves its exponentials to the gradient.

    XLA does not see that exp(result) is a quotient of values that it already has, and computes it
    again; and it computes values that only one sum needs inside that sum, one number at a time.
    With two uses the exponentials are computed once, several at a time: a cross entropy of ten
    classes with its gradient takes a fifth less.
    """
    if not isinstance(a, jax.core.Tracer) or is_narrow(a) or a.size == 0 or a.ndim == 0:
        return _log_softmax_program(a, dim, half_to_float)
    shifted, exponentials, total = _exponentials(a, dim)
    out = shifted - jnp.log(total)
    key = id(out)
    result = weakref.ref(out, lambda _: _traced.pop(key, None))
    _traced[key] = (result, exponentials, total)
    return out


def log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    known = _traced.get(id(output))
    if known is None or known[0]() is not output:
        return _log_softmax_backward_program(grad, output, dim, input_dtype)
    _, exponentials, total = known
    return grad - exponentials * (jnp.sum(grad, dim, keepdims=True) / total)


KERNELS: Final[dict[str, Kernel]] = {
    "relu": program(_relu),
    "threshold": program(_threshold, 1, 2),
    "threshold_backward": program(_threshold_backward, 2),
    "hardtanh": program(_hardtanh, 1, 2),
    "hardtanh_backward": program(_hardtanh_backward, 2, 3),
    "leaky_relu": program(_floating("leaky_relu_cpu", _leaky_relu), 1),
    "leaky_relu_backward": program(_floating("leaky_relu_cpu", _leaky_relu_backward), 2, 3),
    "elu": program(_floating("elu_cpu", _elu), 1, 2, 3),
    "elu_backward": program(_floating("elu_cpu", _elu_backward), 1, 2, 3, 4),
    "gelu": program(_floating("GeluKernelImpl", _gelu), 1),
    "gelu_backward": program(_floating("GeluBackwardKernelImpl", _gelu_backward), 2),
    "silu": program(_floating("silu_cpu", _silu)),
    "silu_backward": program(_floating("silu_backward_cpu", _silu_backward)),
    "tanh_backward": program(_floating("tanh_backward_cpu", _tanh_backward)),
    "sigmoid_backward": program(_floating("sigmoid_backward_cpu", _sigmoid_backward)),
    "softplus": program(_floating("softplus_cpu", _softplus), 1, 2),
    "softplus_backward": program(_floating("softplus_backward_cpu", _softplus_backward), 2, 3),
    "log_sigmoid": program(_floating("log_sigmoid_cpu", _log_sigmoid)),
    "_softmax": _along(_softmax_of),
    "_log_softmax": log_softmax,
    "_softmax_backward_data": program(_softmax_backward, 2, 3),
    "_log_softmax_backward_data": log_softmax_backward,
}
