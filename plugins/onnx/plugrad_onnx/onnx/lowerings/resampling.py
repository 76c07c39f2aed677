"""Resizing images, and sampling them at a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import Varying

# plugrad's modes that Resize supports.
_MODES: dict[str, dict[str, Any]] = {
    "nearest": {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    },
    "linear": {"mode": "linear"},
    "cubic": {"mode": "cubic", "cubic_coeff_a": -0.75},
}


@lowers("_resample")
def resample(
    b: Builder,
    x: Value,
    output_size: Sequence[Any],
    mode: str,
    align_corners: bool,
    scales: Sequence[float],
) -> Value:
    rank = len(output_size)
    # Runtimes support cubic resizing only in two dimensions; they resize lines linearly instead.
    if mode not in _MODES or x.dtype != plugrad.float32 or (mode == "cubic" and rank != 2):
        return by_matrices(b, x, output_size, mode, align_corners, scales)
    settings: dict[str, Any] = dict(_MODES[mode])
    if mode != "nearest":
        how = "align_corners" if align_corners else "half_pixel"
        settings["coordinate_transformation_mode"] = how
    leading = x.ndim - rank
    if any(scale > 0 for scale in scales):
        pairs = zip(x.sizes[leading:], output_size, scales, strict=True)
        if any(scale <= 0 or math.floor(_int(size) * scale) != _int(n) for size, n, scale in pairs):
            return by_matrices(b, x, output_size, mode, align_corners, scales)
        factors = plugrad.tensor([*[1.0] * leading, *scales], dtype=plugrad.float32)
        by_scales: Value = b.op("Resize", x, None, b.constant(factors), **settings)
        return by_scales
    sizes = b.integers([*x.sizes[:leading], *output_size])
    by_sizes: Value = b.op("Resize", x, None, None, sizes, **settings)
    return by_sizes


def _int(size: Any) -> int:
    """A size as an int; a dynamic size has the example's value."""
    return size.values[0] if isinstance(size, Varying) else int(size)


def by_matrices(
    b: Builder,
    x: Value,
    output_size: Sequence[Any],
    mode: str,
    align_corners: bool,
    scales: Sequence[float],
) -> Value:
    """Resample by a matrix product along one dimension after the other.

    Resampling a line is linear, so the matrix is the resampled identity.
    """
    rank = len(output_size)
    if not x.dtype.is_floating_point:
        raise OnnxExporterError(
            f"resamples {x.dtype} by the mode {mode!r}, which can be exported for floats only: "
            "cast to float32 before"
        )
    result = x
    for place, (size, count) in enumerate(zip(x.sizes[-rank:], output_size, strict=True)):
        scale = scales[place] if place < len(scales) else 0.0
        identity = plugrad.eye(int(size), dtype=x.dtype).unsqueeze(0)
        resampled = plugrad.ops.plugrad._resample
        matrix = resampled(identity, [int(count)], mode, align_corners, [scale])[0]
        axis = x.ndim - rank + place
        order = list(range(x.ndim))
        order[axis], order[-1] = order[-1], order[axis]
        turned = b.op("Transpose", result, perm=order)
        result = b.op("Transpose", b.op("MatMul", turned, b.constant(matrix)), perm=order)
    return result


_GRID = (("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"))


@lowers("grid_sampler", "grid_sampler_2d")
def grid_sampler(
    b: Builder,
    x: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    mode = _GRID[0][interpolation_mode]
    if b.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    elif x.ndim != 4:
        raise OnnxExporterError("samples volumes, for which ONNX has GridSample from opset 20 on")
    return b.op(
        "GridSample",
        x,
        b.cast(grid, x.dtype),
        mode=mode,
        padding_mode=_GRID[1][padding_mode],
        align_corners=int(align_corners),
    )
