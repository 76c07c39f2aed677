"""Pooling by windows, and to a given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import NARROW
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.lowerings.convolution import spread
from plugrad_onnx.onnx.lowerings.resampling import by_matrices
from plugrad_onnx.onnx.lowerings.shape import padded
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import Varying


def _batched(b: Builder, x: Value, rank: int, pool: Callable[[Value], Any]) -> Any:
    """Pool an image that may have no batch."""
    if x.ndim == rank + 2:
        return pool(x)
    result = pool(Value(b.unsqueeze(x, 0).name, (1, *x.sizes), x.dtype))
    if isinstance(result, tuple):
        return tuple(b.squeeze(each, 0) for each in result)
    return b.squeeze(result, 0)


def _settings(
    b: Builder,
    x: Value,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil: bool,
) -> dict[str, Any]:
    """The windows. Versions of ONNX differ in the windows that `ceil` adds; where they do, padding
    at the end replaces it."""
    size = spread(kernel, rank)
    steps = spread(stride, rank) if stride else size
    pads, wide = spread(padding, rank), spread(dilation, rank)
    ends = list(pads)
    lengths, counts = x.sizes[-rank:], b.shape[-rank:]
    if ceil and any(isinstance(length, Varying) for length in lengths):
        if b.opset < 22:
            raise OnnxExporterError(
                "with ceil_mode takes images of a fixed size, or opset_version=22 or newer"
            )
    elif ceil:
        spans = [wide[n] * (size[n] - 1) + 1 for n in range(rank)]
        over = [lengths[n] + 2 * pads[n] - spans[n] for n in range(rank)]
        # All versions agree in this case. In others, ONNX counts a window that covers only padding,
        # and PyTorch drops it.
        ceil = all(-(-over[n] // steps[n]) + 1 == counts[n] for n in range(rank))
        if not ceil:
            lasts = [(counts[n] - 1) * steps[n] + spans[n] for n in range(rank)]
            ends = [max(pads[n], lasts[n] - lengths[n] - pads[n]) for n in range(rank)]
    return {
        "kernel_shape": size,
        "strides": steps,
        "pads": [*pads, *ends],
        "ceil_mode": int(ceil),
    }


def _average(rank: int) -> Callable[..., Value]:
    def lower(
        b: Builder,
        x: Value,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        settings = _settings(b, x, rank, kernel_size, stride, padding, (1,), ceil_mode)

        def pool(image: Value) -> Value:
            counted = count_include_pad or divisor_override is not None
            before, behind = settings["pads"][:rank], settings["pads"][rank:]
            if counted and before != behind:
                # Elements of `padding` count, elements added by `ceil_mode` do not.
                pairs = [side for pad in reversed(before) for side in (pad, pad)]
                image = padded(b, image, pairs, "constant", 0)
                extra = [end - pad for pad, end in zip(before, behind, strict=True)]
                settings["pads"] = [*[0] * rank, *extra]
                counted = False
            found: Value = b.op("AveragePool", image, **settings, count_include_pad=int(counted))
            if divisor_override is None:
                return found
            count = 1
            for length in settings["kernel_shape"]:
                count *= length
            return b.op("Mul", found, b.number(count / divisor_override, x.dtype))

        if divisor_override is not None and ceil_mode:
            # Windows at the end have fewer elements, and AveragePool divides by their number.
            raise OnnxExporterError(
                "with divisor_override and ceil_mode has no counterpart in ONNX: leave one out"
            )
        result: Value = _batched(b, x, rank, pool)
        return result

    return lower


def _maximum(rank: int, indices: bool) -> Callable[..., Any]:
    def lower(
        b: Builder,
        x: Value,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        settings = _settings(b, x, rank, kernel_size, stride, padding, dilation, ceil_mode)
        settings["dilations"] = spread(dilation, rank)
        wide = b.cast(x, plugrad.float32) if x.dtype in NARROW else x

        def pool(image: Value) -> Any:
            if not indices:
                return b.op("MaxPool", image, **settings)
            values, places = b.op("MaxPool", image, **settings, outputs=2)
            # ONNX's indices count through the whole tensor, PyTorch's through each image.
            count: Any = 1
            for size in image.sizes[2:]:
                count = count * size
            places = Value(places.name, None, plugrad.int64)
            within = b.op("Mod", places, b.number(count, plugrad.int64))
            return values, within

        found = _batched(b, wide, rank, pool)
        if not indices:
            return b.cast(found, x.dtype)
        return b.cast(found[0], x.dtype), found[1]

    return lower


for _rank in (1, 2, 3):
    lowers(f"avg_pool{_rank}d")(_average(_rank))
    lowers(f"max_pool{_rank}d")(_maximum(_rank, False))
    lowers(f"max_pool{_rank}d_with_indices")(_maximum(_rank, True))


def _adaptive(rank: int) -> Callable[..., Value]:
    def lower(b: Builder, x: Value, output_size: Sequence[Any]) -> Value:
        wanted = list(b.shape[-rank:])
        if all(type(size) is int and size == 1 for size in wanted):
            over = b.constant(list(range(x.ndim - rank, x.ndim)))
            return b.op("ReduceMean", x, over, keepdims=1)
        return by_matrices(b, x, wanted, "area", False, ())

    return lower


for _rank in (1, 2, 3):
    lowers(f"adaptive_avg_pool{_rank}d")(_adaptive(_rank))
