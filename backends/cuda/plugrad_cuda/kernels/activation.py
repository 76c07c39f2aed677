"""Kernels of activation functions and their gradients, each one launch except the softmaxes.

16-bit floats are computed in float32. The softmaxes here serve dtypes for which there is no CUDA
source in `plugrad_cuda.fused`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad.plugins.kernel_errors import not_implemented
from plugrad_cuda.kernels import expressions
from plugrad_cuda.kernels.family import Family, number, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace

_SQRT_HALF: Final = math.sqrt(0.5)
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)
_GELU_SCALE: Final = math.sqrt(2.0 / math.pi)
_GELU_CUBIC: Final = 0.044715


def _check_relu(a: Array) -> None:
    if a.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if a.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


def _threshold(xp: Any, a: Array, limit: Any, value: Any) -> Any:
    return xp.where(a <= limit, value, a)


def _threshold_backward(xp: Any, grad: Array, x: Array, limit: Any) -> Any:
    return xp.where(x <= limit, 0.0, grad)


def _integer_threshold_backward(xp: Any, grad: Array, x: Array, limit: Any) -> Any:
    return xp.where(x <= limit, 0, grad)


def _hardtanh_backward(xp: Any, grad: Array, x: Array, low: Any, high: Any) -> Any:
    return xp.where((x <= low) | (x >= high), 0.0, grad)


def _leaky_relu(xp: Any, a: Array, slope: Any) -> Any:
    return xp.where(a > 0, a, a * slope)


def _leaky_relu_backward(xp: Any, grad: Array, x: Array, slope: Any) -> Any:
    return xp.where(x > 0, grad, grad * slope)


def _elu(xp: Any, a: Array, alpha: Any, scale: Any, input_scale: Any) -> Any:
    negative = xp.expm1(xp.minimum(a, 0.0) * input_scale) * alpha * scale
    return xp.where(a > 0, a * scale, negative)


def _elu_backward(xp: Any, grad: Array, alpha: Any, scale: Any, input_scale: Any, x: Array) -> Any:
    slope = xp.exp(xp.minimum(x * input_scale, 0.0)) * alpha * scale * input_scale
    return xp.where(x <= 0, grad * slope, grad * scale)


def _elu_backward_of_result(
    xp: Any, grad: Array, alpha: Any, scale: Any, input_scale: Any, x: Array
) -> Any:
    return xp.where(x <= 0, grad * (x + alpha * scale) * input_scale, grad * scale)


def _gelu_tanh(xp: Any, x: Array) -> Any:
    return xp.tanh(x * (x * x * (_GELU_CUBIC * _GELU_SCALE) + _GELU_SCALE))


def _gelu_by_tanh(xp: Any, x: Array) -> Any:
    return (_gelu_tanh(xp, x) + 1) * 0.5 * x


def _gelu_by_tanh_backward(xp: Any, grad: Array, x: Array) -> Any:
    t = _gelu_tanh(xp, x)
    slope = x * (x * x * (3 * _GELU_CUBIC * _GELU_SCALE) + _GELU_SCALE) * (1 - t * t)
    return grad * (slope + t + 1) * 0.5


def _silu(xp: Any, x: Array) -> Any:
    return expressions.sigmoid(xp, x) * x


def _silu_backward(xp: Any, grad: Array, x: Array) -> Any:
    s = expressions.sigmoid(xp, x)
    return grad * s * ((1 - s) * x + 1)


def _tanh_backward(xp: Any, grad: Array, y: Array) -> Any:
    return grad * (1 - y * y)


def _sigmoid_backward(xp: Any, grad: Array, y: Array) -> Any:
    return grad * ((1 - y) * y)


def _softplus(xp: Any, x: Array, beta: Any, limit: Any) -> Any:
    scaled = x * beta
    return xp.where(scaled > limit, x, xp.log1p(xp.exp(scaled)) / beta)


def _softplus_backward(xp: Any, grad: Array, x: Array, beta: Any, limit: Any) -> Any:
    scaled = x * beta
    return xp.where(scaled > limit, grad, grad * expressions.sigmoid(xp, scaled))


def _log_sigmoid(xp: Any, x: Array) -> Any:
    return xp.minimum(x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))


def _shifted_minus_log(xp: Any, x: Array, largest: Array, total: Array) -> Any:
    return x - largest - xp.log(total)


def _log_softmax_gradient(xp: Any, grad: Array, output: Array, total: Array) -> Any:
    return grad - xp.exp(output) * total


def _softmax_gradient(xp: Any, grad: Array, output: Array, total: Array) -> Any:
    return output * (grad - total)


class Activation(Family):
    """Fused elementwise functions, and softmaxes along a dimension."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        erf = ns.erf

        def normal_cdf(x: Array) -> Any:
            return (erf(x * _SQRT_HALF) + 1) * 0.5

        def gelu(xp: Any, x: Array) -> Any:
            return normal_cdf(x) * x

        def gelu_backward(xp: Any, grad: Array, x: Array) -> Any:
            return grad * (xp.exp(x * x * -0.5) * _DENSITY * x + normal_cdf(x))

        self.exact_gelu = self.fused(gelu)
        self.exact_gelu_backward = self.fused(gelu_backward)
        self.tanh_gelu = self.fused(_gelu_by_tanh)
        self.tanh_gelu_backward = self.fused(_gelu_by_tanh_backward)
        self.fused_threshold = self.fused(_threshold)
        self.float_threshold_backward = self.fused(_threshold_backward)
        self.integer_threshold_backward = self.fused(_integer_threshold_backward)
        self.fused_hardtanh = self.fused(expressions.clamp)
        self.hardtanh_backward = self.fused(_hardtanh_backward)
        self.leaky_relu = self.fused(_leaky_relu)
        self.fused_leaky_relu_backward = self.fused(_leaky_relu_backward)
        self.elu = self.fused(_elu)
        self.elu_backward_of_input = self.fused(_elu_backward)
        self.elu_backward_of_result = self.fused(_elu_backward_of_result)
        self.silu = self.fused(_silu)
        self.silu_backward = self.fused(_silu_backward)
        self.tanh_backward = self.fused(_tanh_backward)
        self.sigmoid_backward = self.fused(_sigmoid_backward)
        self.softplus = self.fused(_softplus)
        self.softplus_backward = self.fused(_softplus_backward)
        self.log_sigmoid = self.fused(_log_sigmoid)
        self.shifted_exp = self.fused(expressions.shifted_exp)
        self.shifted_minus_log = self.fused(_shifted_minus_log)
        self.softmax_gradient = self.fused(_softmax_gradient)
        self.log_softmax_gradient = self.fused(_log_softmax_gradient)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "relu": self.relu,
            "relu_": self.relu_,
            "threshold": self.threshold,
            "threshold_backward": self.threshold_backward,
            "hardtanh": self.hardtanh,
            "hardtanh_backward": self.hardtanh_backward,
            "leaky_relu": self.floating("leaky_relu_cuda", self.leaky_relu),
            "leaky_relu_backward": self.floating("leaky_relu_cuda", self.leaky_relu_backward),
            "elu": self.floating("elu_cuda", self.elu),
            "elu_backward": self.floating("elu_cuda", self.elu_backward),
            "gelu": self.floating("GeluCUDAKernelImpl", self.gelu),
            "gelu_backward": self.floating("GeluBackwardCUDAKernelImpl", self.gelu_backward),
            "silu": self.floating("silu_cuda", self.silu),
            "silu_backward": self.floating("silu_backward_cuda", self.silu_backward),
            "tanh_backward": self.floating("tanh_backward_cuda", self.tanh_backward),
            "sigmoid_backward": self.floating("sigmoid_backward_cuda", self.sigmoid_backward),
            "softplus": self.floating("softplus_cuda", self.softplus),
            "softplus_backward": self.floating("softplus_backward_cuda", self.softplus_backward),
            "log_sigmoid": self.floating("log_sigmoid_forward_cuda", self.log_sigmoid),
            "_softmax": self.softmax,
            "_log_softmax": self.log_softmax,
            "_softmax_backward_data": self.softmax_backward,
            "_log_softmax_backward_data": self.log_softmax_backward,
        }

    def floating(self, name: str, kernel: Kernel) -> Kernel:
        """A kernel for real floating point dtypes; others raise in PyTorch's words."""

        def checked(a: Array, *rest: Any) -> Any:
            if a.dtype.kind not in "fV":
                raise not_implemented(name, a.dtype)
            return kernel(a, *rest)

        return checked

    def relu(self, a: Array) -> Any:
        _check_relu(a)
        return self.xp.maximum(a, a.dtype.type(0))

    def relu_(self, a: Array) -> None:
        _check_relu(a)
        self.xp.maximum(a, a.dtype.type(0), out=a)

    def threshold(self, a: Array, limit: Any, value: Any) -> Any:
        if a.dtype.kind in "bc":
            raise not_implemented("threshold_cuda", a.dtype)
        return self.fused_threshold(a, number(limit, a.dtype), number(value, a.dtype))

    def threshold_backward(self, grad: Array, x: Array, limit: Any) -> Any:
        if grad.dtype.kind in "iu":
            return self.integer_threshold_backward(grad, x, number(limit, x.dtype))
        return self.float_threshold_backward(grad, x, number(limit, x.dtype))

    def hardtanh(self, a: Array, low: Any, high: Any) -> Any:
        return self.fused_hardtanh(a, number(low, a.dtype), number(high, a.dtype))

    def leaky_relu_backward(self, grad: Array, x: Array, slope: Any, self_is_result: bool) -> Any:
        return self.fused_leaky_relu_backward(grad, x, slope)

    def elu_backward(
        self, grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Array
    ) -> Any:
        kernel = self.elu_backward_of_result if is_result else self.elu_backward_of_input
        return kernel(grad, alpha, scale, input_scale, x)

    def gelu(self, x: Array, approximate: str) -> Any:
        return self.exact_gelu(x) if approximate == "none" else self.tanh_gelu(x)

    def gelu_backward(self, grad: Array, x: Array, approximate: str) -> Any:
        if approximate == "none":
            return self.exact_gelu_backward(grad, x)
        return self.tanh_gelu_backward(grad, x)

    def along(self, kernel: Kernel, a: Array, dim: int, half_to_float: bool) -> Any:
        """A softmax, of 16-bit floats in float32; of empty and of 0-dim arrays."""
        if a.size == 0:
            return a.copy()
        wide = widen(a)
        result = kernel(wide, dim) if a.ndim else kernel(wide.reshape(1), 0).reshape(())
        return result if half_to_float else result.astype(a.dtype, copy=False)

    def softmax(self, a: Array, dim: int, half_to_float: bool) -> Any:
        return self.along(self.softmax_of, a, dim, half_to_float)

    def log_softmax(self, a: Array, dim: int, half_to_float: bool) -> Any:
        return self.along(self.log_softmax_of, a, dim, half_to_float)

    def softmax_of(self, a: Array, dim: int) -> Array:
        exponentials = self.shifted_exp(a, self.xp.amax(a, axis=dim, keepdims=True))
        total = self.xp.sum(exponentials, axis=dim, keepdims=True)
        return self.xp.true_divide(exponentials, total, out=exponentials)

    def log_softmax_of(self, a: Array, dim: int) -> Array:
        largest = self.xp.amax(a, axis=dim, keepdims=True)
        total = self.xp.sum(self.shifted_exp(a, largest), axis=dim, keepdims=True)
        return self.shifted_minus_log(a, largest, total)

    def softmax_backward(self, grad: Array, output: Array, dim: int, input_dtype: Any) -> Any:
        if output.ndim == 0:
            return (widen(output) * 0.0).astype(input_dtype)
        grad, output = widen(grad), widen(output)
        total = self.xp.sum(self.xp.multiply(grad, output), axis=dim, keepdims=True)
        return self.softmax_gradient(grad, output, total).astype(input_dtype, copy=False)

    def log_softmax_backward(self, grad: Array, output: Array, dim: int, input_dtype: Any) -> Any:
        if output.ndim == 0:
            return (widen(output) * 0.0).astype(input_dtype)
        grad, output = widen(grad), widen(output)
        total = self.xp.sum(grad, axis=dim, keepdims=True)
        return self.log_softmax_gradient(grad, output, total).astype(input_dtype, copy=False)
