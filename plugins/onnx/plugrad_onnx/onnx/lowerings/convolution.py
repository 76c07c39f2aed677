"""Convolutions, and windows as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.lowerings.shape import padded
from plugrad_onnx.onnx.registry import lowers


def spread(values: Sequence[Any], count: int) -> list[Any]:
    """One number for each spatial dimension."""
    given = list(values)
    return given * count if len(given) == 1 else given


@lowers("convolution")
def convolution(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    rank = weight.ndim - 2
    unbatched = x.ndim == rank + 1
    if unbatched:
        x = b.unsqueeze(x, 0)
    pads = spread(padding, rank)
    settings: dict[str, Any] = {
        "kernel_shape": list(weight.sizes[2:]),
        "strides": spread(stride, rank),
        "pads": [*pads, *pads],
        "dilations": spread(dilation, rank),
        "group": groups,
    }
    if transposed:
        settings["output_padding"] = spread(output_padding, rank)
    result = b.op("ConvTranspose" if transposed else "Conv", x, weight, bias, **settings)
    return b.squeeze(result, 0) if unbatched else result


@lowers("im2col")
def im2col(
    b: Builder,
    x: Value,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    kernel, steps = spread(kernel_size, 2), spread(stride, 2)
    wide, pads = spread(dilation, 2), spread(padding, 2)
    unbatched = x.ndim == 3
    if unbatched:
        x = Value(b.unsqueeze(x, 0).name, (1, *x.sizes), x.dtype)
    batch, channels, *image = x.sizes
    if any(pads):
        x = padded(b, x, [pads[1], pads[1], pads[0], pads[0]], "constant", 0)
    counts = [
        (size + 2 * pad - span * (length - 1) - 1) // step + 1
        for size, pad, span, length, step in zip(image, pads, wide, kernel, steps, strict=True)
    ]
    for axis, (length, span, step, count) in enumerate(
        zip(kernel, wide, steps, counts, strict=True)
    ):
        places = [[i * span + j * step for j in range(count)] for i in range(length)]
        x = b.op("Gather", x, b.constant(places), axis=2 + 2 * axis)
    # (N, C, k0, n0, k1, n1)
    x = b.transpose(Value(x.name, None, x.dtype), [0, 1, 2, 4, 3, 5])
    shape = [batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]]
    return b.reshape(x, shape[1:] if unbatched else shape)


@lowers("col2im")
def col2im(
    b: Builder,
    x: Value,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    unbatched = x.ndim == 2
    if unbatched:
        x = b.unsqueeze(x, 0)
    pads = spread(padding, 2)
    result = b.op(
        "Col2Im",
        x,
        b.integers(spread(output_size, 2)),
        b.integers(spread(kernel_size, 2)),
        dilations=spread(dilation, 2),
        pads=[*pads, *pads],
        strides=spread(stride, 2),
    )
    return b.squeeze(result, 0) if unbatched else result
