"""Arguments of convolution, in PyTorch's words."""

from __future__ import annotations

from plugrad._generated.settings import Convolution
from plugrad.dtype import BOOL
from plugrad.ops.windows import transposed_sizes
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES


def convolution(
    input: TensorBase, weight: TensorBase, bias: TensorBase | None, settings: Convolution
) -> tuple[object, ...]:
    x = sizes_of(input)
    w = sizes_of(weight)
    spatial = len(w) - 2
    how = per_dimension(settings, spatial)
    _check_steps(how)
    _check_channels(x, w, how)
    outputs = w[1] * how.groups if how.transposed else w[0]
    if bias is not None and sizes_of(bias) != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if how.transposed else ''}weight of size {list(w)}, expected "
            f"bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(sizes_of(bias))} instead"
        )
    if how.transposed:
        _check_output_padding(how)
        _check_output(x, w, how)
    else:
        _check_kernel_fits(x, w, how)
    _check_dtypes(input, weight, bias)
    return (input, weight, bias, *how.values())


def convolution_backward(
    grad_output: TensorBase,
    input: TensorBase,
    weight: TensorBase,
    bias_sizes: tuple[int, ...] | None,
    settings: Convolution,
    output_mask: tuple[bool, bool, bool],
) -> tuple[object, ...]:
    how = per_dimension(settings, len(sizes_of(weight)) - 2)
    _check_steps(how)
    # What the output was padded with follows from the sizes.
    steps = (how.stride, how.padding, how.dilation, how.transposed, how.groups)
    return (grad_output, input, weight, *steps, output_mask)


def per_dimension(settings: Convolution, spatial: int) -> Convolution:
    """With as many values as spatial dimensions, also if one was given for all."""
    if spatial < 1:
        raise RuntimeError("weight should have at least three dimensions")
    if (
        len(settings.stride) == spatial
        and len(settings.padding) == spatial
        and len(settings.dilation) == spatial
        and len(settings.output_padding) == spatial
    ):
        return settings
    how = settings.copy()
    how.stride = _values("stride", how.stride, spatial)
    how.padding = _values("padding", how.padding, spatial)
    how.dilation = _values("dilation", how.dilation, spatial)
    how.output_padding = _values("output_padding", how.output_padding, spatial)
    return how


def _values(name: str, values: tuple[int, ...], spatial: int) -> tuple[int, ...]:
    if len(values) == spatial:
        return values
    if len(values) == 1:
        return values * spatial
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {spatial} values to match the "
        f"convolution dimensions, but got {name}={list(values)}"
    )


def _check_steps(how: Convolution) -> None:
    if min(how.padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(how.stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(how.dilation) <= 0:
        raise RuntimeError("non-positive dilation is not supported")
    if how.groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_channels(x: tuple[int, ...], w: tuple[int, ...], how: Convolution) -> None:
    groups = how.groups
    if how.transposed:
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


def _check_kernel_fits(x: tuple[int, ...], w: tuple[int, ...], how: Convolution) -> None:
    padding, dilation = how.padding, how.dilation
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


def _check_output_padding(how: Convolution) -> None:
    output_padding, stride, dilation = how.output_padding, how.stride, how.dilation
    for i in range(len(stride)):
        if output_padding[i] >= max(stride[i], dilation[i]):
            _raise_output_padding(how)


def _check_output(x: tuple[int, ...], w: tuple[int, ...], how: Convolution) -> None:
    sizes = transposed_sizes(
        x[2:], w[2:], how.stride, how.padding, how.dilation, how.output_padding
    )
    if min(sizes) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({_by(list(x[2:]))}). Calculated output size per "
            f"channel: ({_by(list(sizes))}). Output size is too small"
        )


def _raise_output_padding(how: Convolution) -> None:
    words: list[str] = []
    for name, values in (
        ("output_padding", how.output_padding),
        ("stride", how.stride),
        ("dilation", how.dilation),
    ):
        # More dimensions than three have numbers.
        axes = ("depth", "height", "width")
        for i, value in enumerate(values):
            axis = axes[i - len(values)] if len(values) <= len(axes) else str(i)
            words.append(f"{name}_{axis}: {value}")
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got " + " ".join(words)
    )


def _check_dtypes(input: TensorBase, weight: TensorBase, bias: TensorBase | None) -> None:
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
