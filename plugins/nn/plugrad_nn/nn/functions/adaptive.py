"""Adaptive pooling as plain functions; `functional` shows them beside the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

Sizes: TypeAlias = int | Sequence[int | None] | None


def _filled(input: Tensor, output_size: Any, spatial: int) -> Any:
    """The sizes that are wanted; those of the input where None stands."""
    if output_size is None:
        output_size = (None,) * spatial
    if not isinstance(output_size, Sequence):
        return (output_size,) * spatial
    count = len(output_size)
    if input.ndim <= count:
        raise ValueError(f"Input dimension should be at least {count + 1}")
    if count != spatial:
        raise RuntimeError(f"output_size must be {spatial} numbers, got {tuple(output_size)}")
    sizes = zip(output_size, input.shape[-count:], strict=True)
    return tuple(size if wanted is None else wanted for wanted, size in sizes)


@overridable
def adaptive_avg_pool1d(
    input: Tensor, output_size: int | Sequence[int], *, out: Tensor | None = None
) -> Tensor:
    """The means of `output_size` windows that together cover a signal (N, C, L) or (C, L)."""
    return plugrad.adaptive_avg_pool1d(input, output_size, out=out)


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` windows that together cover an image (N, C, H, W) or (C, H, W).

    A size of None keeps the input's.
    """
    return plugrad.adaptive_avg_pool2d(input, _filled(input, output_size, 2))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` windows that together cover a volume.

    The volume is (N, C, D, H, W) or (C, D, H, W). A size of None keeps the input's.
    """
    return plugrad.adaptive_avg_pool3d(input, _filled(input, output_size, 3))


@overridable
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """The maxima of `output_size` windows that together cover a signal (N, C, L) or (C, L).

    With `return_indices` also where in its signal each value was found.
    """
    found, indices = plugrad.adaptive_max_pool1d(input, output_size)
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with indices, whatever `return_indices` says."""
    return plugrad.adaptive_max_pool1d(input, output_size)


@overridable
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that together cover an image (N, C, H, W) or (C, H, W).

    With `return_indices` also where in its image each value was found. A size of None keeps
    the input's.
    """
    found, indices = plugrad.adaptive_max_pool2d(input, _filled(input, output_size, 2))
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with indices, whatever `return_indices` says."""
    return plugrad.adaptive_max_pool2d(input, _filled(input, output_size, 2))


@overridable
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that together cover a volume.

    The volume is (N, C, D, H, W) or (C, D, H, W). With `return_indices` also where in its volume
    each value was found. A size of None keeps the input's.
    """
    found, indices = plugrad.adaptive_max_pool3d(input, _filled(input, output_size, 3))
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with indices, whatever `return_indices` says."""
    return plugrad.adaptive_max_pool3d(input, _filled(input, output_size, 3))
