"""Composite activation functions, and decompositions for backends without the kernels."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dtype import BOOL, FLOATING, DType, float16, float32
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.formulas.activation import GELU_CUBIC, GELU_SCALE
from plugrad.ops.prepare import activation as prepare
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

SELU_ALPHA: Final = 1.6732632423543772848170429916717
SELU_SCALE: Final = 1.0507009873554804934193349852946


def softmax(self: Tensor, dim: int, dtype: DType | None) -> Tensor:
    if dtype is None or dtype is self.dtype:
        return C.call__softmax(self, dim, False)
    if self.dtype is float16 and dtype is float32:
        return F._softmax(self, dim, True)
    return F._softmax(F._to_copy(self, dtype), dim, False)


def log_softmax(self: Tensor, dim: int, dtype: DType | None) -> Tensor:
    if dtype is None or dtype is self.dtype:
        return C.call__log_softmax(self, dim, False)
    if self.dtype is float16 and dtype is float32:
        return F._log_softmax(self, dim, True)
    return F._log_softmax(F._to_copy(self, dtype), dim, False)


def relu6(self: Tensor) -> Tensor:
    return F.hardtanh(self, 0, 6)


def selu(self: Tensor) -> Tensor:
    return F.elu(self, SELU_ALPHA, SELU_SCALE)


def celu(self: Tensor, alpha: Any) -> Tensor:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return F.elu(self, alpha, 1.0, 1.0 / alpha)


def mish(self: Tensor) -> Tensor:
    check_real_floating("mish_cpu", self.dtype)
    return self * F.softplus(self).tanh()


def hardsigmoid(self: Tensor) -> Tensor:
    check_real_floating("hardsigmoid_cpu", self.dtype)
    return F.hardtanh(self + 3.0, 0, 6) / 6.0


def hardswish(self: Tensor) -> Tensor:
    check_real_floating("hardswish_cpu", self.dtype)
    x = widened(self)
    return in_dtype_of(x * F.hardtanh(x + 3.0, 0, 6) / 6.0, self)


def logsigmoid(self: Tensor) -> Tensor:
    return F.log_sigmoid(self)


def glu(self: Tensor, dim: int) -> Tensor:
    if self.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, self.ndim)
    size = sizes_of(self)[dim]
    if size % 2 != 0:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    check_real_floating("glu_cpu", self.dtype)
    half = size // 2
    return F.narrow(self, dim, 0, half) * F.narrow(self, dim, half, half).sigmoid()


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {self.dtype.scalar_name} and "
            f"{weight.dtype.scalar_name}"
        )
    count = weight.numel()
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    channels = 1 if self.ndim < 2 else sizes_of(self)[1]
    if count != 1:
        if self.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if count != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    shape = (count,) + (1,) * (self.ndim - 2) if count != 1 else (1,) * self.ndim
    # Positive elements are not multiplied: neither they nor the weight may become nan there.
    positive = self > 0
    return F.where(positive, self, F.where(positive, 0, self) * weight.reshape(shape))


def relu(self: Tensor) -> Tensor:
    if self.dtype.category == BOOL:
        raise RuntimeError("Boolean inputs not supported for relu")
    return self.clamp_min(0)


def threshold(self: Tensor, threshold: Any, value: Any) -> Tensor:
    prepare.threshold(self, threshold, value)
    if self.dtype.category < FLOATING:
        value = int(value)
        threshold = int(threshold)
    return F.where(self <= threshold, value, self)


def threshold_backward(grad: Tensor, x: Tensor, threshold: Any) -> Tensor:
    return F.where(x <= threshold, 0, grad)


def hardtanh(self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    prepare.hardtanh(self, min_val, max_val)
    return self.clamp(min_val, max_val)


def hardtanh_backward(grad: Tensor, x: Tensor, min_val: Any, max_val: Any) -> Tensor:
    prepare.hardtanh_backward(grad, x, min_val, max_val)
    return F.where((x <= min_val).logical_or(x >= max_val), 0, grad)


def leaky_relu(self: Tensor, negative_slope: Any) -> Tensor:
    check_real_floating("leaky_relu_cpu", self.dtype)
    return F.where(self > 0, self, self * negative_slope)


def leaky_relu_backward(
    grad: Tensor, x: Tensor, negative_slope: Any, self_is_result: bool
) -> Tensor:
    prepare.leaky_relu_backward(grad, x, negative_slope, self_is_result)
    return F.where(x > 0, grad, grad * negative_slope)


def elu(self: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Tensor:
    prepare.elu(self, alpha, scale, input_scale)
    check_real_floating("elu_cpu", self.dtype)
    negative = (self * input_scale).expm1() * (alpha * scale)
    return F.where(self <= 0, negative, self * scale)


def elu_backward(
    grad: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Tensor
) -> Tensor:
    prepare.elu_backward(grad, alpha, scale, input_scale, is_result, x)
    slope = x + alpha * scale if is_result else (x * input_scale).exp() * (alpha * scale)
    return F.where(x <= 0, grad * slope * input_scale, grad * scale)


def gelu(self: Tensor, approximate: str) -> Tensor:
    prepare.gelu(self, approximate)
    if approximate == "none":
        return self * ((self * math.sqrt(0.5)).erf() + 1.0) * 0.5
    inner = (self + self * self * self * GELU_CUBIC) * GELU_SCALE
    return self * (inner.tanh() + 1.0) * 0.5


def gelu_backward(grad: Tensor, x: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        density = (x * x * -0.5).exp() * (1.0 / math.sqrt(2.0 * math.pi))
        return grad * (((x * math.sqrt(0.5)).erf() + 1.0) * 0.5 + x * density)
    t = ((x + x * x * x * GELU_CUBIC) * GELU_SCALE).tanh()
    slope = (x * x * (3.0 * GELU_CUBIC) + 1.0) * GELU_SCALE
    return grad * ((t + 1.0) + x * (1.0 - t * t) * slope) * 0.5


def silu(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        check_real_floating("silu_cpu", self.dtype)
    return self * self.sigmoid()


def silu_backward(grad: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    return grad * (s * (x * (1.0 - s) + 1.0)).conj()


def tanh_backward(grad: Tensor, y: Tensor) -> Tensor:
    return grad * (1.0 - y * y).conj()


def sigmoid_backward(grad: Tensor, y: Tensor) -> Tensor:
    return grad * ((1.0 - y) * y).conj()


def softplus(self: Tensor, beta: Any, threshold: Any) -> Tensor:
    prepare.softplus(self, beta, threshold)
    check_real_floating("softplus_cpu", self.dtype)
    scaled = self * beta
    return F.where(scaled > threshold, self, scaled.exp().log1p() / beta)


def softplus_backward(grad: Tensor, x: Tensor, beta: Any, threshold: Any) -> Tensor:
    prepare.softplus_backward(grad, x, beta, threshold)
    scaled = x * beta
    return F.where(scaled > threshold, grad, grad * scaled.sigmoid())


def log_sigmoid(self: Tensor) -> Tensor:
    check_real_floating("log_sigmoid_cpu", self.dtype)
    return self.clamp_max(0) - (-self.abs()).exp().log1p()


def softmax_by_exp(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    prepare.softmax(self, dim, half_to_float)
    x = F._to_copy(self, float32) if half_to_float else self
    if x.numel() == 0:
        return x
    e = (x - x.amax(dim=(dim,), keepdim=True)).exp()
    return e / e.sum(dim=(dim,), keepdim=True)


def log_softmax_by_exp(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    prepare.log_softmax(self, dim, half_to_float)
    x = F._to_copy(self, float32) if half_to_float else self
    if x.numel() == 0:
        return x
    shifted = x - x.amax(dim=(dim,), keepdim=True)
    return shifted - shifted.exp().sum(dim=(dim,), keepdim=True).log()


def softmax_backward_by_sum(grad: Tensor, output: Tensor, dim: int, input_dtype: DType) -> Tensor:
    product = grad * output
    found = product - output * product.sum(dim=(dim,), keepdim=True)
    return found if found.dtype is input_dtype else F._to_copy(found, input_dtype)


def log_softmax_backward_by_sum(
    grad: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    found = grad - output.exp() * grad.sum(dim=(dim,), keepdim=True)
    return found if found.dtype is input_dtype else F._to_copy(found, input_dtype)
