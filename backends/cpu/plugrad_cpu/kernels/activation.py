"""Kernels of activation functions and their gradients.

They are fused: they work in place on one buffer, where a chain of operators would make many.
16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import not_implemented
from plugrad_cpu.kernels.linalg import is_narrow, widen
from plugrad_cpu.numerics.adapters import as_operand, in_memory_order
from plugrad_cpu.numerics.erf import erf

Array = Any
Kernel = Callable[..., Any]

_SQRT_HALF: Final = math.sqrt(0.5)
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)
_GELU_SCALE: Final = math.sqrt(2.0 / math.pi)
_GELU_CUBIC: Final = 0.044715

# Below this size a where is cheaper than working on the bits.
_SMALL: Final = 256

# Elements that are worked on at a time.
_BLOCK: Final = 1 << 14

# Bound here for speed; their positional arguments are dim, dtype, out, keepdim.
_largest: Final[Kernel] = np.maximum.reduce
_total: Final[Kernel] = np.add.reduce

_zeros: Final[dict[Any, Array]] = {}


def zero_of(dtype: Any) -> Array:
    """A 0-dim zero; ufuncs take it faster than a Python number."""
    found = _zeros.get(dtype)
    if found is None:
        found = _zeros[dtype] = np.zeros((), dtype)
    return found


def floating(name: str, kernel: Kernel) -> Kernel:
    """A kernel for real floating dtypes: others raise in PyTorch's words, 16 bits are widened."""

    def checked(a: Array, *rest: Any) -> Any:
        kind = a.dtype.kind
        if kind != "f" and kind != "V":
            raise not_implemented(name, a.dtype)
        if a.itemsize == 2:
            wide = [widen(x) if isinstance(x, np.ndarray) else x for x in rest]
            return checked(widen(a), *wide).astype(a.dtype)
        if a.size > 2 * _BLOCK:
            return _by_blocks(kernel, a, rest)
        return kernel(a, *rest)

    return checked


def _by_blocks(kernel: Kernel, a: Array, rest: tuple[Any, ...]) -> Array:
    """A fused elementwise kernel that runs on blocks, so that temporary arrays stay in the
    cache."""
    arrays = [a, *(x for x in rest if isinstance(x, np.ndarray))]
    if any(x.shape != a.shape or not x.flags.c_contiguous for x in arrays):
        return kernel(a, *rest)
    out = np.empty(a.shape, a.dtype)
    target = out.reshape(-1)
    flat = [x.reshape(-1) if isinstance(x, np.ndarray) else x for x in (a, *rest)]
    for start in range(0, target.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        target[part] = kernel(*[x[part] if isinstance(x, np.ndarray) else x for x in flat])
    return out


def keep_where_not(drop: Array, grad: Array) -> Array:
    """`grad` with zeros where `drop` holds.

    A where branches on each element, and mispredicts on most of them; a multiplication would turn
    inf into nan. So the bits are masked, with 0 or -1 in an integer of the same size.
    """
    if drop.size < _SMALL:
        return np.where(drop, zero_of(grad.dtype), grad)
    mask = np.subtract(drop.view(np.int8), 1)
    bits = grad.view(f"i{grad.itemsize}")
    return np.bitwise_and(bits, mask).view(grad.dtype)


def _refuse_relu(dtype: Any) -> None:
    if dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    raise NotImplementedError("clamp is not supported for complex types")


def relu(a: Array) -> Any:
    if a.dtype.kind in "bc":
        _refuse_relu(a.dtype)
    return np.maximum(a, zero_of(a.dtype))


def _lowered_relu(a: Array) -> Any:
    return None if a.dtype.kind in "bc" else (np.maximum, (a, zero_of(a.dtype)))


relu.lowered = _lowered_relu  # type: ignore[attr-defined]  # functions take attributes


def relu_(a: Array) -> None:
    if a.dtype.kind in "bc":
        _refuse_relu(a.dtype)
    np.maximum(a, zero_of(a.dtype), out=a)


def threshold(a: Array, limit: Any, value: Any) -> Any:
    if a.dtype.kind in "bc":
        raise not_implemented("threshold_cpu", a.dtype)
    if a.dtype.kind in "iu":
        limit, value = int(limit), int(value)
    return np.where(a <= as_operand(limit, a.dtype), as_operand(value, a.dtype), a)


def threshold_backward(grad: Array, x: Array, limit: Any) -> Any:
    if limit == 0:
        return keep_where_not(np.less_equal(x, zero_of(x.dtype)), grad)
    return keep_where_not(np.less_equal(x, as_operand(limit, x.dtype)), grad)


def hardtanh(a: Array, low: Any, high: Any) -> Any:
    out = np.maximum(a, as_operand(low, a.dtype))
    return np.minimum(out, as_operand(high, a.dtype), out=out if out.ndim else None)


def hardtanh_backward(grad: Array, x: Array, low: Any, high: Any) -> Any:
    outside = np.less_equal(x, as_operand(low, x.dtype))
    outside |= np.greater_equal(x, as_operand(high, x.dtype))
    return keep_where_not(np.asarray(outside), grad)


def leaky_relu(a: Array, slope: Any) -> Any:
    scaled = a * as_operand(slope, a.dtype)
    # max(x, slope * x) is the function for slopes up to 1, and needs no branch.
    return np.maximum(a, scaled) if 0 < slope <= 1 else np.where(a > 0, a, scaled)


def leaky_relu_backward(grad: Array, x: Array, slope: Any, self_is_result: bool) -> Any:
    slopes = np.array([slope, 1], grad.dtype)
    return slopes.take((x > 0).view(np.int8)) * grad


def elu(a: Array, alpha: Any, scale: Any, input_scale: Any) -> Any:
    negative = np.minimum(a, zero_of(a.dtype))
    if input_scale != 1:
        negative = negative * as_operand(input_scale, a.dtype)
    negative = np.expm1(negative) * as_operand(alpha * scale, a.dtype)
    positive = np.maximum(a, zero_of(a.dtype))
    if scale != 1:
        positive = positive * as_operand(scale, a.dtype)
    # One of the two summands is zero.
    return positive + negative


def elu_backward(
    grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Array
) -> Any:
    factor = as_operand(alpha * scale, x.dtype)
    if is_result:
        slope = x + factor
    else:
        slope = np.exp(np.minimum(x * as_operand(input_scale, x.dtype), zero_of(x.dtype))) * factor
    if input_scale != 1:
        slope = slope * as_operand(input_scale, x.dtype)
    return grad * np.where(x <= 0, slope, as_operand(scale, x.dtype))


def _normal_cdf(x: Array) -> Array:
    out = erf(np.asarray(x * as_operand(_SQRT_HALF, x.dtype)))
    out += as_operand(1, x.dtype)
    out *= as_operand(0.5, x.dtype)
    return out


def _gelu_tanh(x: Array) -> tuple[Array, Array]:
    """x * x, and the tanh of the approximation."""
    square = np.asarray(x * x)
    inner = square * as_operand(_GELU_CUBIC * _GELU_SCALE, x.dtype)
    inner = np.asarray(inner + as_operand(_GELU_SCALE, x.dtype))
    inner *= x
    return square, np.asarray(np.tanh(inner))


def gelu(x: Array, approximate: str) -> Any:
    if approximate == "none":
        return _normal_cdf(x) * x
    _, t = _gelu_tanh(x)
    t += as_operand(1, x.dtype)
    t *= as_operand(0.5, x.dtype)
    return t * x


def gelu_backward(grad: Array, x: Array, approximate: str) -> Any:
    if approximate == "none":
        density = np.asarray(x * x)
        density *= as_operand(-0.5, x.dtype)
        density = np.asarray(np.exp(density))
        density *= as_operand(_DENSITY, x.dtype)
        density *= x
        density += _normal_cdf(x)
        return density * grad
    square, t = _gelu_tanh(x)
    slope = square * as_operand(3 * _GELU_CUBIC * _GELU_SCALE, x.dtype)
    slope = np.asarray(slope + as_operand(_GELU_SCALE, x.dtype))
    slope *= x
    slope *= as_operand(1, x.dtype) - t * t
    slope += t
    slope += as_operand(1, x.dtype)
    slope *= as_operand(0.5, x.dtype)
    return slope * grad


def _sigmoid(x: Array) -> Array:
    out = np.asarray(np.exp(-x))
    out += as_operand(1, x.dtype)
    return np.asarray(np.reciprocal(out))


def silu(x: Array) -> Any:
    return _sigmoid(x) * x


def silu_backward(grad: Array, x: Array) -> Any:
    s = _sigmoid(x)
    slope = np.asarray(as_operand(1, x.dtype) - s)
    slope *= x
    slope += as_operand(1, x.dtype)
    slope *= s
    return slope * grad


def tanh_backward(grad: Array, y: Array) -> Any:
    slope = np.asarray(np.square(y))
    np.subtract(as_operand(1, y.dtype), slope, out=slope)
    return slope * grad


def sigmoid_backward(grad: Array, y: Array) -> Any:
    slope = np.asarray(as_operand(1, y.dtype) - y)
    np.multiply(slope, y, out=slope)
    return slope * grad


def softplus(x: Array, beta: Any, limit: Any) -> Any:
    scaled = x if beta == 1 else x * as_operand(beta, x.dtype)
    smooth = np.asarray(np.log1p(np.exp(scaled)))
    if beta != 1:
        smooth /= as_operand(beta, x.dtype)
    return np.where(scaled > as_operand(limit, x.dtype), x, smooth)


def softplus_backward(grad: Array, x: Array, beta: Any, limit: Any) -> Any:
    scaled = x if beta == 1 else x * as_operand(beta, x.dtype)
    smooth = _sigmoid(scaled) * grad
    return np.where(scaled > as_operand(limit, x.dtype), grad, smooth)


def log_sigmoid(x: Array) -> Any:
    x = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    out = np.asarray(np.log1p(np.exp(-np.abs(x))))
    return np.minimum(x, zero_of(x.dtype)) - out


def _exponentials(a: Array, dim: int) -> tuple[Array, Array, Array]:
    """a - max, its exponential, and the sum of that, along `dim`."""
    shifted = np.subtract(a, _largest(a, dim, None, None, True))
    exponentials = np.exp(shifted)
    return shifted, exponentials, _total(exponentials, dim, None, None, True)


def _softmax_of(a: Array, dim: int) -> Array:
    _, exponentials, total = _exponentials(a, dim)
    return np.divide(exponentials, total, exponentials)


def _log_softmax_of(a: Array, dim: int) -> Array:
    shifted, _, total = _exponentials(a, dim)
    return np.subtract(shifted, np.log(total, total), shifted)


def _along(kernel: Kernel) -> Kernel:
    """A softmax kernel that handles empty, 0-dim and 16-bit arrays."""

    def along(a: Array, dim: int, half_to_float: bool) -> Any:
        if a.itemsize == 2 and is_narrow(a):
            wide = along(widen(a), dim, False)
            return wide if half_to_float else wide.astype(a.dtype)
        if a.size == 0:
            return a.copy()
        if a.ndim == 0:
            return kernel(a.reshape(1), 0).reshape(())
        return kernel(a if a.flags.c_contiguous else np.ascontiguousarray(a), dim)

    return along


def softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Any:
    if output.itemsize == 2:
        grad, output = widen(grad), widen(output)
    if output.ndim == 0:
        return np.multiply(output, 0.0).astype(input_dtype)
    out = np.multiply(grad, output)
    np.subtract(out, output * _total(out, dim, None, None, True), out)
    return out if out.dtype is input_dtype else out.astype(input_dtype, copy=False)


def log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Any:
    if output.itemsize == 2:
        grad, output = widen(grad), widen(output)
    if output.ndim == 0:
        return np.multiply(output, 0.0).astype(input_dtype)
    out = np.exp(output)
    np.multiply(out, _total(grad, dim, None, None, True), out)
    np.subtract(grad, out, out)
    return out if out.dtype is input_dtype else out.astype(input_dtype, copy=False)


KERNELS: Final[dict[str, Kernel]] = {
    "relu": relu,
    "relu_": relu_,
    "threshold": threshold,
    "threshold_backward": threshold_backward,
    "hardtanh": hardtanh,
    "hardtanh_backward": hardtanh_backward,
    "leaky_relu": floating("leaky_relu_cpu", leaky_relu),
    "leaky_relu_backward": floating("leaky_relu_cpu", leaky_relu_backward),
    "elu": floating("elu_cpu", elu),
    "elu_backward": floating("elu_cpu", elu_backward),
    "gelu": floating("GeluKernelImpl", in_memory_order(gelu)),
    "gelu_backward": floating("GeluBackwardKernelImpl", gelu_backward),
    "silu": floating("silu_cpu", silu),
    "silu_backward": floating("silu_backward_cpu", silu_backward),
    "tanh_backward": floating("tanh_backward_cpu", tanh_backward),
    "sigmoid_backward": floating("sigmoid_backward_cpu", sigmoid_backward),
    "softplus": floating("softplus_cpu", softplus),
    "softplus_backward": floating("softplus_backward_cpu", softplus_backward),
    "log_sigmoid": floating("log_sigmoid_cpu", log_sigmoid),
    "_softmax": _along(_softmax_of),
    "_log_softmax": _along(_log_softmax_of),
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": log_softmax_backward,
}
