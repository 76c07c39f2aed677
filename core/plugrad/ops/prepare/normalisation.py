"""Arguments of normalisation, in PyTorch's words."""

from __future__ import annotations

from plugrad._generated.settings import BatchNorm, LayerNorm
from plugrad.dtype import DType, float32
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.base import TensorBase, numel_of, sizes_of


def native_layer_norm(input: TensorBase, settings: LayerNorm, eps: float) -> tuple[object, ...]:
    check_normalized_shape(input, settings)
    check_real_floating("LayerNormKernelImpl", input.dtype)
    check_parameter_dtypes(input.dtype, settings.weight, settings.bias)
    return (input, settings.normalized_shape, settings.weight, settings.bias, eps)


def check_normalized_shape(input: TensorBase, settings: LayerNorm) -> None:
    """The sizes of the input's last dimensions, and those of weight and bias."""
    shape = sizes_of(input)
    normalized_shape = settings.normalized_shape
    count = len(normalized_shape)
    if count == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    _check_shape("weight", settings.weight, normalized_shape)
    _check_shape("bias", settings.bias, normalized_shape)
    if shape[len(shape) - count :] != normalized_shape or len(shape) < count:
        wanted = "".join([f", {size}" for size in normalized_shape])
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*{wanted}], but got input of size{list(shape)}"
        )


def _check_shape(name: str, parameter: TensorBase | None, shape: tuple[int, ...]) -> None:
    if parameter is not None and sizes_of(parameter) != shape:
        raise RuntimeError(
            f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
            f"{list(sizes_of(parameter))} and normalized_shape = {list(shape)}"
        )


def check_parameter_dtypes(dtype: DType, *parameters: TensorBase | None) -> None:
    """Parameters have the input's dtype; with a 16-bit input float32 will do as well."""
    others = [p for p in parameters if p is not None and p.dtype is not dtype]
    for parameter in others:
        if parameter.dtype is not float32:
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if others and dtype.itemsize != 2:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def native_batch_norm(
    input: TensorBase, settings: BatchNorm, bias: TensorBase | None, momentum: float
) -> tuple[object, ...]:
    shape = sizes_of(input)
    if len(shape) < 2:
        ndim = max(len(shape), 1)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got 1)"
        )
    given = (
        ("running_mean", settings.running_mean),
        ("running_var", settings.running_var),
        ("weight", settings.weight),
        ("bias", bias),
    )
    for name, tensor in given:
        if tensor is None:
            if not settings.training and name in ("running_mean", "running_var"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif numel_of(tensor) != shape[1]:
            raise RuntimeError(f"{name} should contain {shape[1]} elements not {numel_of(tensor)}")
    check_real_floating("batch_norm", input.dtype)
    statistics = (settings.running_mean, settings.running_var)
    check_parameter_dtypes(input.dtype, settings.weight, bias, *statistics)
    return (
        input,
        settings.weight,
        bias,
        settings.running_mean,
        settings.running_var,
        settings.training,
        momentum,
        settings.eps,
    )
