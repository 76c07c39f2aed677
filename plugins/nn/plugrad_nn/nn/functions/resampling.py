"""Images of another size, and images read at the places of a grid, as plain functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from operator import index
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

_MODES: Final = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_ALIGNING: Final = ("linear", "bilinear", "bicubic", "trilinear")
_AVERAGING: Final = ("bilinear", "bicubic", "lanczos")
# How many spatial dimensions a mode is for, where that is one number only.
_DIMENSIONS: Final = {"linear": 1, "bilinear": 2, "bicubic": 2, "lanczos": 2, "trilinear": 3}
_OPERATORS: Final = {
    "linear": "upsample_linear1d",
    "bilinear": "upsample_bilinear2d",
    "bicubic": "upsample_bicubic2d",
    "trilinear": "upsample_trilinear3d",
}


@overridable
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Signals, images or volumes of another size.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: of the result, for each spatial dimension or for all.
        scale_factor: how many times larger the result is; either this or `size` is given.
        mode: "nearest", "nearest-exact" or "area"; "linear" for signals; "bilinear", "bicubic" or,
            with `antialias`, "lanczos" for images; "trilinear" for volumes.
        align_corners: whether the outermost elements keep their places, in the linear and cubic
            modes.
        recompute_scale_factor: positions are computed from the sizes, instead of `scale_factor`.
        antialias: average over the area of an element, if the result is smaller.

    Raises:
        ValueError: not exactly one of `size` and `scale_factor` is given, or options do not fit.
        NotImplementedError: `mode` is unknown, or for another number of dimensions.

    >>> import plugrad
    >>> x = plugrad.tensor([[[1.0, 3.0]]])
    >>> plugrad.nn.functional.interpolate(x, scale_factor=2, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    if mode not in _ALIGNING and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            + " | ".join(_ALIGNING)
        )
    spatial = input.ndim - 2
    shape = tuple(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    wanted: list[int] | None = None
    factors: list[float] | None = None
    if size is not None:
        wanted = _whole(size) if isinstance(size, Sequence) else _whole([size]) * spatial
        if len(wanted) != spatial:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(shape)} and output size of {size}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
    elif scale_factor is not None:
        factors = _factors(scale_factor, shape)
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        wanted = [math.floor(s * factor) for s, factor in zip(shape, factors, strict=True)]
        factors = None
    if antialias and not (mode in _AVERAGING and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    return _interpolated(input, wanted, factors, mode, bool(align_corners), antialias)


def _factors(scale_factor: Any, shape: tuple[int, ...]) -> list[float]:
    """A factor for each dimension of an image."""
    several = isinstance(scale_factor, (list, tuple))
    given = scale_factor if several else [scale_factor] * len(shape)
    if len(given) != len(shape):
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(shape)} and scale_factor of shape "
            f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "scale_factor in (s1, s2, ...,sK)"
        )
    factors: list[float] = []
    for factor in given:
        if not hasattr(factor, "__float__"):
            kind = type(factor).__name__
            raise TypeError(
                "interpolate(): argument 'scale_factor' (position 3) must be float or tuple of "
                f"floats, not {f'a sequence with {kind}' if several else kind}"
            )
        factors.append(float(factor))
    return factors


def _whole(sizes: Sequence[Any]) -> list[int]:
    """Sizes as Python's integers; bools stay, for the operator to refuse."""
    try:
        return [size if isinstance(size, bool) else index(size) for size in sizes]
    except TypeError:
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {[type(size) for size in sizes]}"
        ) from None


def _interpolated(
    input: Tensor,
    size: list[int] | None,
    factors: list[float] | None,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Tensor:
    spatial = input.ndim - 2
    if spatial not in (1, 2, 3) or mode not in _MODES.split(" | "):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.ndim}D) for the modes: {_MODES} (got {mode})"
        )
    meant = _DIMENSIONS.get(mode, spatial)
    if meant != spatial:
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {meant + 2}D input"
        )
    if mode == "area":
        assert size is not None
        return _area(input, size)
    if mode in ("nearest", "nearest-exact"):
        name = "upsample_nearest" if mode == "nearest" else "_upsample_nearest_exact"
        nearest: Any = getattr(plugrad, f"{name}{spatial}d")
        return nearest(input, size, factors)  # type: ignore[no-any-return]
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    name = f"_upsample_{mode}2d_aa" if antialias else _OPERATORS[mode]
    return getattr(plugrad, name)(input, size, align_corners, factors)  # type: ignore[no-any-return]


def _area(input: Tensor, size: list[int]) -> Tensor:
    """Means over the elements that each element of the result covers."""
    if len(size) == 1:
        return plugrad.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size[0])).squeeze(-2)
    if len(size) == 2:
        return plugrad.adaptive_avg_pool2d(input, size)
    batch, channels, depth = tuple(input.shape[:3])
    planes = plugrad.adaptive_avg_pool2d(input.flatten(1, 2), size[1:])
    area = size[1] * size[2]
    lines = plugrad.adaptive_avg_pool2d(
        planes.reshape(batch, channels, depth, area), (size[0], area)
    )
    return lines.reshape(batch, channels, *size)


@overridable
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its former name, deprecated.

    Args:
        input, size, scale_factor, mode, align_corners: see `interpolate`.

    >>> import plugrad
    >>> signal = plugrad.tensor([[[1.0, 3.0]]])
    >>> plugrad.nn.functional.upsample(signal, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable
def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` in the mode "nearest", deprecated.

    Args:
        input, size, scale_factor: see `interpolate`.

    >>> import plugrad
    >>> signal = plugrad.tensor([[[1.0, 3.0]]])
    >>> plugrad.nn.functional.upsample_nearest(signal, size=4)
    tensor([[[1., 1., 3., 3.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@overridable
def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` in the mode "bilinear" with aligned corners, deprecated.

    Args:
        input, size, scale_factor: see `interpolate`.

    >>> import plugrad
    >>> image = plugrad.tensor([[[[1.0, 3.0]]]])
    >>> plugrad.nn.functional.upsample_bilinear(image, size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=4,
    )


@overridable
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images (N, C, H, W) or volumes (N, C, D, H, W) read at the places of a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, h, w, 2) of x and y, or (N, d, h, w, 3) of x, y and z; -1 and 1 are the edges.
        mode: "bilinear", "nearest", or "bicubic" for images.
        padding_mode: the values outside: "zeros", "border" or "reflection".
        align_corners: whether -1 and 1 are the centers of the outermost elements; without it, False
            and a warning.

    Returns:
        (N, C, h, w) or (N, C, d, h, w).

    Raises:
        ValueError: a mode is unknown.
        RuntimeError: shapes or dtypes do not fit.

    >>> import plugrad
    >>> image = plugrad.tensor([[[[1.0, 2.0, 3.0]]]])
    >>> grid = plugrad.tensor([[[[0.0, 0.0], [0.5, 0.0]]]])
    >>> plugrad.nn.functional.grid_sample(image, grid, align_corners=True).tolist()
    [[[[2.0, 2.5]]]]
    """
    modes = ("bilinear", "nearest", "bicubic")
    if mode not in modes:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    paddings = ("zeros", "border", "reflection")
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False "
            "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
            "the documentation of grid_sample for details.",
            stacklevel=3,
        )
    return plugrad.grid_sampler(
        input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners)
    )


@overridable
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of affine maps.

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes; floating dtype.
        size: of the result of `grid_sample`, (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centers of the outermost elements; without it, False
            and a warning.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError: `theta` is not floating or has another shape, or a size is not positive.
        NotImplementedError: there are neither 4 nor 5 sizes.

    >>> import plugrad
    >>> theta = plugrad.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> plugrad.nn.functional.affine_grid(theta, (1, 1, 1, 3), align_corners=False)[0, 0, :, 0]
    tensor([-0.6667,  0.0000,  0.6667])
    """
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False "
            "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
            "the documentation of grid_sample for details.",
            stacklevel=3,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = tuple(size)
    if len(sizes) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {sizes}."
        )
    spatial = len(sizes) - 2
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (spatial, spatial + 1):
        raise ValueError(
            f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} "
            f"for size {sizes}. Got {theta.shape}."
        )
    if align_corners and min(sizes[-spatial:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=3,
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    return plugrad.affine_grid_generator(theta, list(sizes), align_corners)
