"""Arguments of normalisation, in PyTorch's words."""

from __future__ import annotations

from plugrad._generated.settings import BatchNorm, GroupNorm, LayerNorm
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import DType, finfo, float32
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.aliasing.layout import is_contiguous
from plugrad.tensor.base import TensorBase, numel_of, sizes_of


def native_layer_norm(input: TensorBase, settings: LayerNorm, eps: float) -> tuple[object, ...]:
    check_normalized_shape(input, settings)
    check_real_floating("LayerNormKernelImpl", input.dtype)
    check_parameter_dtypes(input.dtype, settings.weight, settings.bias)
    return (input, settings.normalized_shape, settings.weight, settings.bias, eps)


def check_normalized_shape(input: TensorBase, settings: LayerNorm) -> None:
    """The sizes of the input's last dimensions, and of weight and bias."""
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


def fused_rms_norm(input: TensorBase, settings: LayerNorm, eps: float | None) -> object:
    """Declines tensors that are not contiguous, whose result has another memory order."""
    check_normalized_shape(input, settings)
    check_real_floating("rms_norm", input.dtype)
    check_parameter_dtypes(input.dtype, settings.weight)
    if not is_contiguous(input):
        return DECLINED
    small = rms_norm_eps(input.dtype, eps)
    return (input, settings.normalized_shape, settings.weight, small)


def rms_norm_eps(dtype: DType, eps: float | None) -> float:
    """The given eps, or the machine epsilon of the dtype in which the norm is computed."""
    if eps is not None:
        return eps
    return finfo(float32 if dtype.itemsize == 2 else dtype).eps


def native_group_norm(input: TensorBase, settings: GroupNorm, eps: float) -> object:
    """Declines tensors that are not contiguous, whose result has another memory order."""
    _check_groups(input, settings)
    check_parameter_dtypes(input.dtype, settings.weight, settings.bias)
    check_real_floating("GroupNormKernelImpl", input.dtype)
    _check_count("X", input, settings)
    if not is_contiguous(input):
        return DECLINED
    weight, bias = settings.weight, settings.bias
    return (input, weight, bias, settings.N, settings.C, settings.HxW, settings.group, eps)


def native_group_norm_backward(
    grad_out: TensorBase,
    input: TensorBase,
    mean: TensorBase,
    rstd: TensorBase,
    settings: GroupNorm,
    output_mask: tuple[bool, bool, bool],
) -> tuple[object, ...]:
    _check_groups(input, settings)
    _check_count("dY", grad_out, settings)
    _check_count("X", input, settings)
    sizes = (settings.N, settings.C, settings.HxW, settings.group)
    return (grad_out, input, mean, rstd, settings.weight, *sizes, output_mask)


def by_group(settings: GroupNorm) -> tuple[int, int, int, int]:
    """The shape in which groups are dimensions: samples, groups, channels of one, elements."""
    size = settings.C // settings.group
    return (settings.N, settings.group, size, settings.HxW)


def beside_groups(settings: GroupNorm) -> tuple[int, int, int, int]:
    """The shape in which a channel's parameter broadcasts with that."""
    return (1, settings.group, settings.C // settings.group, 1)


def _check_groups(input: TensorBase, settings: GroupNorm) -> None:
    shape, channels, groups = sizes_of(input), settings.C, settings.group
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups != 0:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={groups}"
        )
    for name, parameter in (("weight", settings.weight), ("bias", settings.bias)):
        if parameter is not None and sizes_of(parameter) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(sizes_of(parameter))} and input of shape "
                f"{list(shape)}"
            )


def _check_count(name: str, tensor: TensorBase, settings: GroupNorm) -> None:
    if numel_of(tensor) != settings.N * settings.C * settings.HxW:
        raise RuntimeError(
            f"Expected {name}.numel() == N * C * HxW to be true, but got false: N={settings.N}, "
            f"C={settings.C}, HxW={settings.HxW}, and the shape is {list(sizes_of(tensor))}"
        )


def is_parameter_dtype(dtype: DType, other: DType) -> bool:
    """Whether a parameter of a dtype is allowed with an input of another one."""
    return dtype is other or (dtype is float32 and other.itemsize == 2)


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
