"""Arguments of activation functions: dtypes checked in PyTorch's words, dimensions wrapped."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import BOOL, COMPLEX, FLOATING, DType, float64
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import check_scalar_fits, promote_pair, to_dtype


def check_real_floating(kernel: str, dtype: DType) -> None:
    """NotImplementedError in PyTorch's words, with the name of its kernel."""
    if dtype.category != FLOATING:
        raise not_implemented(kernel, dtype)


def threshold(self: TensorBase, threshold: Any, value: Any) -> tuple[object, ...]:
    check_scalar_fits(threshold, self.dtype)
    check_scalar_fits(value, self.dtype)
    return (self, threshold, value)


def hardtanh(self: TensorBase, min_val: Any, max_val: Any) -> tuple[object, ...]:
    if self.dtype.category == BOOL:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    if self.dtype.category < FLOATING:
        min_val, max_val = int(min_val), int(max_val)
        if not self.dtype.is_signed and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    check_scalar_fits(min_val, self.dtype)
    check_scalar_fits(max_val, self.dtype)
    return (self, min_val, max_val)


def leaky_relu_backward(
    grad_output: TensorBase, self: TensorBase, negative_slope: Any, self_is_result: bool
) -> tuple[object, ...]:
    _check_real(negative_slope)
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is "
            "not supported. This is caused by calling in-place forward function with a negative "
            "slope, please call out-of-place version instead. File an issue at "
            "https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu "
            "backward calculation with negative slope"
        )
    return (*_beside(grad_output, self), negative_slope, self_is_result)


def _beside(grad: TensorBase, x: TensorBase) -> tuple[TensorBase, TensorBase]:
    """A gradient and its tensor in one dtype; a call through the operator's handle may pass any
    two."""
    if grad.dtype is x.dtype:
        return (grad, x)
    dtype = promote_pair(grad, x)
    return (to_dtype(grad, dtype), to_dtype(x, dtype))


def _check_real(*numbers: Any) -> None:
    for number in numbers:
        if isinstance(number, complex):
            check_scalar_fits(number, float64)


def elu(self: TensorBase, alpha: Any, scale: Any, input_scale: Any) -> tuple[object, ...]:
    _check_real(alpha, scale, input_scale)
    return (self, alpha, scale, input_scale)


def softplus(self: TensorBase, beta: Any, threshold: Any) -> tuple[object, ...]:
    _check_real(beta, threshold)
    return (self, beta, threshold)


def hardtanh_backward(
    grad_output: TensorBase, self: TensorBase, min_val: Any, max_val: Any
) -> tuple[object, ...]:
    _check_real(min_val, max_val)
    return (grad_output, self, min_val, max_val)


def elu_backward(
    grad_output: TensorBase,
    alpha: Any,
    scale: Any,
    input_scale: Any,
    is_result: bool,
    self_or_result: TensorBase,
) -> tuple[object, ...]:
    _check_real(alpha, scale, input_scale)
    grad, x = _beside(grad_output, self_or_result)
    return (grad, alpha, scale, input_scale, is_result, x)


def gelu_backward(
    grad_output: TensorBase, self: TensorBase, approximate: str
) -> tuple[object, ...]:
    return (*_beside(grad_output, self), approximate)


def silu(self: TensorBase) -> Any:
    """Kernels support real numbers; the decomposition computes complex ones."""
    return DECLINED if self.dtype.category == COMPLEX else (self,)


def silu_backward(grad_output: TensorBase, self: TensorBase) -> Any:
    prepared = _beside(grad_output, self)
    return DECLINED if self.dtype.category == COMPLEX else prepared


def gradient_of_result(grad_output: TensorBase, output: TensorBase) -> Any:
    prepared = _beside(grad_output, output)
    return DECLINED if output.dtype.category == COMPLEX else prepared


def softplus_backward(
    grad_output: TensorBase, self: TensorBase, beta: Any, threshold: Any
) -> tuple[object, ...]:
    _check_real(beta, threshold)
    return (*_beside(grad_output, self), beta, threshold)


def gelu(self: TensorBase, approximate: str) -> tuple[object, ...]:
    if approximate != "none" and approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    check_real_floating("GeluKernelImpl", self.dtype)
    return (self, approximate)


def _softmax(name: str, self: TensorBase, dim: int, half_to_float: bool) -> tuple[object, ...]:
    ndim = len(sizes_of(self))
    dim = wrap_dim(dim, ndim)
    if self.dtype.category != FLOATING and 0 not in sizes_of(self):
        last = "_lastdim" if dim == ndim - 1 else ""
        check_real_floating(f"{name}{last}_kernel_impl", self.dtype)
    return (self, dim, half_to_float)


def softmax(self: TensorBase, dim: int, half_to_float: bool) -> tuple[object, ...]:
    return _softmax("softmax", self, dim, half_to_float)


def log_softmax(self: TensorBase, dim: int, half_to_float: bool) -> tuple[object, ...]:
    return _softmax("log_softmax", self, dim, half_to_float)


def softmax_backward(
    grad_output: TensorBase, output: TensorBase, dim: int, input_dtype: DType
) -> tuple[object, ...]:
    return (grad_output, output, wrap_dim(dim, len(sizes_of(output))), input_dtype)
