"""Launches convolution and its gradients as implicit GEMM.

CuPy had bindings of cuDNN, `cupy.cudnn`, until version 13; version 14 has none. So there is one
way, the kernels of `sources/convolution.cu`. Up to three spatial dimensions are taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cuda.fused.launching import CPP, Array, Launcher, cpp, index_type, wide
from plugrad_cuda.fused.normalization import channel_sums, finish_columns
from plugrad_cuda.fused.runtime import Runtime

Ints = tuple[int, ...]

EXPRESSIONS: Final = {
    "convolution": tuple(
        f"{kernel}<{t}, {index}>"
        for t in CPP.values()
        for index in ("int", "i64")
        for kernel in ("convolve", "convolve_to_input", "convolve_to_weight")
    )
}

# As in the source: the side of a tile of the product, and how deep its steps are.
_TILE: Final = 64
_DEPTH: Final = 16
# Blocks that keep a GPU busy, and the least depth that is worth a block of its own.
_BUSY: Final = 256
_LEAST_DEPTH: Final = 256


@dataclass(frozen=True)
class _Geometry:
    """A convolution (not its transpose), by sizes; spatial dimensions as in the operator.

    Attributes:
        windows: of the images, as many as the result has places.
    """

    images: int
    channels: int
    filters: int
    groups: int
    windows: Windows

    def arguments(self) -> Ints:
        """What the kernels get, with leading dimensions of size 1 up to three."""
        windows = self.windows
        missing = 3 - len(windows.kernel)
        ones, zeros = (1,) * missing, (0,) * missing
        return (
            self.images,
            self.channels,
            self.filters,
            self.groups,
            *(ones + windows.sizes),
            *(ones + windows.out),
            *(ones + windows.kernel),
            *(ones + windows.stride),
            *(zeros + windows.padding),
            *(ones + windows.dilation),
        )

    def index(self) -> str:
        """The type of positions, among them those in the padding."""
        windows = self.windows
        reached = [
            size + 2 * p + k * d
            for size, p, k, d in zip(
                windows.sizes, windows.padding, windows.kernel, windows.dilation, strict=True
            )
        ]
        per_group = max(self.channels, self.filters) * math.prod(windows.kernel)
        places = max(math.prod(reached), math.prod(windows.out))
        images = max(self.images, 1)
        return index_type(
            images * places, per_group, images * max(self.channels, self.filters), *reached
        )


def _blocks(rows: int, columns: int, groups: int) -> int:
    return -(-rows // _TILE) * -(-columns // _TILE) * groups


def _launch(
    run: Runtime, kernel: str, element: str, geometry: _Geometry, grid: int, args: tuple[Any, ...]
) -> None:
    name = f"{kernel}<{element}, {geometry.index()}>"
    run.launch("convolution", name, grid, (256, 1), (*args, *geometry.arguments()))


def _convolve(
    run: Runtime,
    x: Array,
    weight: Array,
    bias: Array | None,
    geometry: _Geometry,
    element: str,
    back: bool,
) -> Array:
    """The convolution, or `back` from its result to the images: its gradient and transpose."""
    g = geometry
    made, sizes = (g.channels, g.windows.sizes) if back else (g.filters, g.windows.out)
    out = run.xp.empty((g.images, made, *sizes), x.dtype)
    if out.size:
        kernel = "convolve_to_input" if back else "convolve"
        grid = _blocks(made // g.groups, out.size // made, g.groups)
        _launch(run, kernel, element, g, grid, (x, weight, bias, out))
    return out


def _to_weight(
    run: Runtime, grad: Array, x: Array, shape: Ints, geometry: _Geometry, element: str
) -> Array:
    """In two steps where there would be too few blocks: sums over shares, and those added up."""
    g = geometry
    depth = g.images * math.prod(g.windows.out)
    blocks = _blocks(shape[0] // g.groups, math.prod(shape[1:]), g.groups)
    shares = max(1, min(_BUSY // max(blocks, 1), depth // _LEAST_DEPTH))
    partial = run.xp.empty((shares, *shape), wide(x.dtype))
    if partial.size:
        _launch(run, "convolve_to_weight", element, g, blocks * shares, (grad, x, partial, shares))
    return finish_columns(run, partial, x.dtype, shape)


def _taken(x: Array, *others: Array | None) -> str | None:
    """The C++ type, if the kernels take these arrays."""
    if x.ndim > 5 or any(a is not None and a.dtype != x.dtype for a in others):
        return None
    return cpp(x)


def convolution(
    run: Runtime,
    x: Array,
    weight: Array,
    bias: Array | None,
    windows: Windows,
    transposed: bool,
    groups: int,
) -> Any:
    """Convolve images (N, C, ...) with filters (O, C / groups, ...), transposed (C, O / groups,
    ...)."""
    element = _taken(x, weight, bias)
    if element is None:
        return NotImplemented
    contiguous = run.xp.ascontiguousarray
    x, weight = contiguous(x), contiguous(weight)
    bias = None if bias is None else contiguous(bias)
    # For a transposed convolution, input and output have the roles in the convolution that it is
    # the gradient of.
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    channels, filters = (outputs, x.shape[1]) if transposed else (x.shape[1], outputs)
    geometry = _Geometry(x.shape[0], channels, filters, groups, windows)
    return _convolve(run, x, weight, bias, geometry, element, transposed)


def convolution_backward(
    run: Runtime,
    grad: Array,
    x: Array,
    weight: Array,
    windows: Windows,
    transposed: bool,
    groups: int,
    mask: tuple[bool, bool, bool],
) -> Any:
    """The gradients toward input, weight and bias; None if not requested."""
    element = _taken(x, weight, grad)
    if element is None:
        return NotImplemented
    contiguous = run.xp.ascontiguousarray
    grad, x, weight = contiguous(grad), contiguous(x), contiguous(weight)
    read, made = (grad, x) if transposed else (x, grad)
    geometry = _Geometry(x.shape[0], read.shape[1], made.shape[1], groups, windows)
    to_input = to_weight = None
    if mask[0]:
        to_input = _convolve(run, grad, weight, None, geometry, element, not transposed)
    if mask[1]:
        to_weight = _to_weight(run, made, read, weight.shape, geometry, element)
    to_bias = channel_sums(run, grad) if mask[2] else None
    return to_input, to_weight, to_bias


LAUNCHERS: Final[dict[str, Launcher]] = {
    name: on_windows(name, launcher, leading=1)
    for name, launcher in (
        ("convolution", convolution),
        ("convolution_backward", convolution_backward),
    )
}
