"""Arguments of normalisation, convolution, pooling, embedding and dropout, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from plugrad.dtype import BOOL, FLOATING, DType, float32, int32, int64
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.ops.windows import window_count
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import to_dtype


def native_layer_norm(
    input: TensorBase,
    normalized_shape: tuple[int, ...],
    weight: TensorBase | None,
    bias: TensorBase | None,
    eps: float,
) -> tuple[object, ...]:
    check_normalized_shape(input, normalized_shape, weight, bias)
    check_real_floating("LayerNormKernelImpl", input.dtype)
    _check_parameters(input.dtype, (weight, bias))
    return (input, normalized_shape, weight, bias, eps)


def check_normalized_shape(
    input: TensorBase,
    normalized_shape: tuple[int, ...],
    weight: TensorBase | None,
    bias: TensorBase | None,
) -> None:
    shape = sizes_of(input)
    count = len(normalized_shape)
    if count == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and sizes_of(parameter) != normalized_shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(sizes_of(parameter))} and normalized_shape = {list(normalized_shape)}"
            )
    if shape[len(shape) - count :] != normalized_shape or len(shape) < count:
        wanted = "".join([f", {size}" for size in normalized_shape])
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*{wanted}], but got input of size{list(shape)}"
        )


def _check_parameters(dtype: DType, parameters: tuple[TensorBase | None, ...]) -> None:
    """All of the input's dtype; with a 16-bit input float32 will do as well."""
    for parameter in parameters:
        if parameter is None or parameter.dtype is dtype:
            continue
        if dtype.itemsize == 2 and parameter.dtype is float32:
            continue
        raise RuntimeError(
            f"mixed dtype (CPU): expect parameter to have scalar type of "
            f"{'Float' if dtype.itemsize == 2 else dtype.scalar_name}"
        )


def native_batch_norm(
    input: TensorBase,
    weight: TensorBase | None,
    bias: TensorBase | None,
    running_mean: TensorBase | None,
    running_var: TensorBase | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[object, ...]:
    shape = sizes_of(input)
    if len(shape) < 2:
        ndim = max(len(shape), 1)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got 1)"
        )
    given = (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    )
    for name, tensor in given:
        if tensor is None:
            if not training and name in ("running_mean", "running_var"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif tensor.numel() != shape[1]:
            raise RuntimeError(f"{name} should contain {shape[1]} elements not {tensor.numel()}")
    check_real_floating("batch_norm", input.dtype)
    _check_parameters(input.dtype, (weight, bias, running_mean, running_var))
    return (input, weight, bias, running_mean, running_var, training, momentum, eps)


def convolution(
    input: TensorBase,
    weight: TensorBase,
    bias: TensorBase | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> tuple[object, ...]:
    x = sizes_of(input)
    w = sizes_of(weight)
    spatial = len(w) - 2
    stride, padding, dilation = convolution_steps(spatial, stride, padding, dilation)
    output_padding = _per_dimension("output_padding", output_padding, spatial)
    _check_steps(stride, padding, dilation, groups)
    _check_channels(x, w, transposed, groups)
    outputs = w[1] * groups if transposed else w[0]
    if bias is not None and sizes_of(bias) != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(w)}, expected "
            f"bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(sizes_of(bias))} instead"
        )
    if transposed:
        for index in range(spatial):
            if output_padding[index] >= max(stride[index], dilation[index]):
                _raise_output_padding(output_padding, stride, dilation)
    else:
        _check_kernel_fits(x, w, padding, dilation)
    _check_convolution_dtypes(input, weight, bias)
    return (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def convolution_backward(
    grad_output: TensorBase,
    input: TensorBase,
    weight: TensorBase,
    bias_sizes: tuple[int, ...] | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
    output_mask: tuple[bool, bool, bool],
) -> tuple[object, ...]:
    spatial = len(sizes_of(weight)) - 2
    if spatial < 1:
        raise RuntimeError("weight should have at least three dimensions")
    stride, padding, dilation = convolution_steps(spatial, stride, padding, dilation)
    _check_steps(stride, padding, dilation, groups)
    return (grad_output, input, weight, stride, padding, dilation, transposed, groups, output_mask)


def _check_steps(
    stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int
) -> None:
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("non-positive dilation is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def convolution_steps(
    spatial: int, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Stride, padding and dilation, each for every spatial dimension."""
    return (
        _per_dimension("stride", stride, spatial),
        _per_dimension("padding", padding, spatial),
        _per_dimension("dilation", dilation, spatial),
    )


def _per_dimension(name: str, values: tuple[int, ...], spatial: int) -> tuple[int, ...]:
    if len(values) == spatial:
        return values
    if len(values) == 1:
        return values * spatial
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {spatial} values to match the "
        f"convolution dimensions, but got {name}={list(values)}"
    )


def _check_channels(x: tuple[int, ...], w: tuple[int, ...], transposed: bool, groups: int) -> None:
    if transposed:
        if w[0] < groups:
            raise RuntimeError(
                f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
                f"but got weight of size {list(w)} instead"
            )
        if x[1] != w[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(w)}, expected input{list(x)} to have "
                f"{w[0]} channels, but got {x[1]} channels instead"
            )
        return
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(w)} instead"
        )
    if w[0] % groups != 0:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(w)}] instead"
        )
    if x[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have "
            f"{w[1] * groups} channels, but got {x[1]} channels instead"
        )


def _check_kernel_fits(
    x: tuple[int, ...], w: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    padded = [x[i + 2] + 2 * padding[i] for i in range(len(w) - 2)]
    kernel = [dilation[i] * (w[i + 2] - 1) + 1 for i in range(len(w) - 2)]
    for size, extent in zip(padded, kernel, strict=True):
        if size < extent:
            raise RuntimeError(
                f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
                f"({_by(kernel)}). Kernel size can't be greater than actual input size"
            )


def _by(sizes: list[int]) -> str:
    return " x ".join([str(size) for size in sizes])


def _raise_output_padding(
    output_padding: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    words: list[str] = []
    for name, values in (
        ("output_padding", output_padding),
        ("stride", stride),
        ("dilation", dilation),
    ):
        for axis, value in zip(("height", "width"), values, strict=True):
            words.append(f"{name}_{axis}: {value}")
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got " + " ".join(words)
    )


def _check_convolution_dtypes(
    input: TensorBase, weight: TensorBase, bias: TensorBase | None
) -> None:
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"Input type (plugrad.{input.dtype.scalar_name}Tensor) and weight type "
            f"(plugrad.{weight.dtype.scalar_name}Tensor) should be the same or input should be a "
            "MKLDNN tensor and weight is a dense tensor"
        )
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(
            f"Input type ({CPP_NAMES[input.dtype.name]}) and bias type "
            f"({CPP_NAMES[bias.dtype.name]}) should be the same"
        )
    if input.dtype.category == BOOL:
        raise NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool'")


def pair(name: str, values: tuple[int, ...]) -> tuple[int, int]:
    """A value for each of height and width."""
    if len(values) == 1:
        return (values[0], values[0])
    if len(values) == 2:
        return (values[0], values[1])
    raise RuntimeError(f"{name} must either be a single int, or a tuple of two ints")


def pooling_windows(
    operator: str,
    self: TensorBase,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
) -> tuple[Any, ...]:
    """Kernel, stride, padding, dilation and output size, each for height and width."""
    kernel = pair(f"{operator}: kernel_size", kernel_size)
    step = pair(f"{operator}: stride", stride) if stride else kernel
    pad = pair(f"{operator}: padding", padding)
    spread = pair(f"{operator}: dilation", dilation)
    if min(step) == 0 or min(kernel) == 0:
        raise RuntimeError("stride should not be zero")
    if min(step) < 0:
        raise RuntimeError(
            f"stride should be greater than zero, but got dH: {step[0]} dW: {step[1]}"
        )
    if min(spread) <= 0:
        raise RuntimeError(
            "dilation should be greater than zero, but got "
            f"dilationH: {spread[0]} dilationW: {spread[1]}"
        )
    for i in range(2):
        if pad[i] < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad[i]}")
        if 2 * pad[i] > (kernel[i] - 1) * spread[i] + 1:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad[i]}, kernel_size={kernel[i]} and dilation={spread[i]}"
            )
    shape = sizes_of(self)
    sizes = [
        window_count(shape[len(shape) - 2 + i], kernel[i], step[i], pad[i], spread[i], ceil_mode)
        for i in range(2)
    ]
    if min(sizes) < 1:
        planes = shape[len(shape) - 3]
        raise RuntimeError(
            f"Given input size: ({planes}x{shape[-2]}x{shape[-1]}). Calculated output size: "
            f"({planes}x{sizes[0]}x{sizes[1]}). Output size is too small"
        )
    return (kernel, step, pad, spread, (sizes[0], sizes[1]))


def _check_images(self: TensorBase) -> None:
    shape = sizes_of(self)
    if len(shape) != 3 and len(shape) != 4:
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    for size in shape[len(shape) - 3 :]:
        if size == 0:
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
                f"but got:{list(shape)}"
            )


def max_pool2d_with_indices(
    self: TensorBase,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
) -> tuple[object, ...]:
    _check_images(self)
    if self.dtype.category == BOOL:
        raise NotImplementedError("\"max_pool2d\" not implemented for 'Bool'")
    windows = pooling_windows("max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode)
    return (self, *windows)


def max_pool2d_with_indices_backward(
    grad_output: TensorBase,
    self: TensorBase,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
    indices: TensorBase,
) -> tuple[object, ...]:
    windows = pooling_windows("max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode)
    return (grad_output, sizes_of(self), indices, *windows)


def avg_pool2d(
    self: TensorBase,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[object, ...]:
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    _check_images(self)
    if self.dtype.category == BOOL:
        raise NotImplementedError("\"avg_pool2d_out_frame\" not implemented for 'Bool'")
    windows = pooling_windows("avg_pool2d", self, kernel_size, stride, padding, (1,), ceil_mode)
    return (self, *windows, count_include_pad, divisor_override)


def avg_pool2d_backward(
    grad_output: TensorBase,
    self: TensorBase,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[object, ...]:
    windows = pooling_windows("avg_pool2d", self, kernel_size, stride, padding, (1,), ceil_mode)
    return (grad_output, sizes_of(self), *windows, count_include_pad, divisor_override)


def embedding(
    weight: TensorBase,
    indices: TensorBase,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> tuple[object, ...]:
    if len(sizes_of(weight)) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype is not int64 and indices.dtype is not int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got plugrad.{indices.dtype.scalar_name}Tensor instead (while checking "
            "arguments for embedding)"
        )
    return (weight, to_dtype(indices, int64))


def native_dropout(
    input: TensorBase, p: float, train: bool | None, generator: Any
) -> tuple[object, ...]:
    drops = train is None or train
    if drops and not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1.0 - p}")
    if drops and input.dtype.category < FLOATING:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}"
        )
    return (input, p, drops, generator)


def one_hot(self: TensorBase, num_classes: int) -> tuple[object, ...]:
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if self.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return (self, num_classes)
