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
from plugrad_onnx.onnx.registry import lowers


def _batched(b: Builder, x: Value, rank: int, pool: Callable[[Value], Any]) -> Any:
    """Pool an image that may have no batch."""
    if x.ndim == rank + 2:
        return pool(x)
    result = pool(Value(b.unsqueeze(x, 0).name, (1, *x.sizes), x.dtype))
    if isinstance(result, tuple):
        return tuple(b.squeeze(each, 0) for each in result)
    return b.squeeze(result, 0)


def _settings(
    rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool
) -> dict[str, Any]:
    size = spread(kernel, rank)
    pads = spread(padding, rank)
    return {
        "kernel_shape": size,
        "strides": spread(stride, rank) if stride else size,
        "pads": [*pads, *pads],
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
        settings = _settings(rank, kernel_size, stride, padding, ceil_mode)

        def pool(image: Value) -> Value:
            counted = count_include_pad or divisor_override is not None
            found: Value = b.op("AveragePool", image, **settings, count_include_pad=int(counted))
            if divisor_override is None:
                return found
            count = 1
            for length in settings["kernel_shape"]:
                count *= length
            return b.op("Mul", found, b.number(count / divisor_override, x.dtype))

        if divisor_override is not None and ceil_mode:
            # Windows at the end have less elements, by which AveragePool divides.
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
        settings = _settings(rank, kernel_size, stride, padding, ceil_mode)
        settings["dilations"] = spread(dilation, rank)
        wide = b.cast(x, plugrad.float32) if x.dtype in NARROW else x

        def pool(image: Value) -> Any:
            if not indices:
                return b.op("MaxPool", image, **settings)
            values, places = b.op("MaxPool", image, **settings, outputs=2)
            # ONNX counts in the whole tensor, PyTorch in each image.
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
