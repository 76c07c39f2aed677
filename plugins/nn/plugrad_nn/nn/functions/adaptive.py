"""Adaptive pooling as plain functions, which `functional` exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

Sizes: TypeAlias = int | Sequence[int | None] | None


def _filled(input: Tensor, output_size: Any, spatial: int) -> Any:
    """The requested sizes; None means the input's size."""
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
    """The means of `output_size` windows that together cover a signal (N, C, L) or (C, L).

    Args:
        input: (N, C, L) or (C, L), floating dtype.
        output_size: how many windows there are.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `input` has neither 2 nor 3 dimensions.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 5.0, 7.0]])
    >>> plugrad.nn.functional.adaptive_avg_pool1d(signal, 2)
    tensor([[2., 6.]])
    """
    return plugrad.adaptive_avg_pool1d(input, output_size, out=out)


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` windows that together cover an image (N, C, H, W) or (C, H, W).

    Args:
        input: (N, C, H, W) or (C, H, W), floating dtype.
        output_size: how many windows there are along H and W; None keeps the input's size.

    Raises:
        ValueError: `input` has not more dimensions than `output_size`.
        RuntimeError: one of them has another number of dimensions.

    >>> import plugrad
    >>> plugrad.nn.functional.adaptive_avg_pool2d(plugrad.ones(1, 3, 8, 6), (2, None)).shape
    plugrad.Size([1, 3, 2, 6])
    """
    return plugrad.adaptive_avg_pool2d(input, _filled(input, output_size, 2))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` windows that together cover a volume.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W), floating dtype.
        output_size: how many windows there are along D, H and W; None keeps the input's size.

    Raises:
        ValueError: `input` has not more dimensions than `output_size`.
        RuntimeError: one of them has another number of dimensions.

    >>> import plugrad
    >>> plugrad.nn.functional.adaptive_avg_pool3d(plugrad.ones(1, 3, 8, 6, 4), 2).shape
    plugrad.Size([1, 3, 2, 2, 2])
    """
    return plugrad.adaptive_avg_pool3d(input, _filled(input, output_size, 3))


@overridable
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """The maxima of `output_size` windows that together cover a signal (N, C, L) or (C, L).

    Args:
        input: (N, C, L) or (C, L), floating dtype.
        output_size: how many windows there are.
        return_indices: whether to return as well where in its signal each value was found.

    Raises:
        RuntimeError: `input` has neither 2 nor 3 dimensions.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> plugrad.nn.functional.adaptive_max_pool1d(signal, 2)
    tensor([[3., 7.]])
    """
    found, indices = plugrad.adaptive_max_pool1d(input, output_size)
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with indices, whatever `return_indices` says.

    Args:
        input, output_size: see `adaptive_max_pool1d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> plugrad.nn.functional.adaptive_max_pool1d_with_indices(signal, 2)
    (tensor([[3., 7.]]), tensor([[1, 2]]))
    """
    return plugrad.adaptive_max_pool1d(input, output_size)


@overridable
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that together cover an image (N, C, H, W) or (C, H, W).

    Args:
        input: (N, C, H, W) or (C, H, W), floating dtype.
        output_size: how many windows there are along H and W; None keeps the input's size.
        return_indices: whether to return as well where in its image each value was found, counted
            row by row.

    Raises:
        ValueError: `input` has not more dimensions than `output_size`.
        RuntimeError: one of them has another number of dimensions.

    >>> import plugrad
    >>> plugrad.nn.functional.adaptive_max_pool2d(plugrad.ones(1, 3, 8, 6), (2, None)).shape
    plugrad.Size([1, 3, 2, 6])
    """
    found, indices = plugrad.adaptive_max_pool2d(input, _filled(input, output_size, 2))
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with indices, whatever `return_indices` says.

    Args:
        input, output_size: see `adaptive_max_pool2d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> image = plugrad.arange(4.0).reshape(1, 2, 2)
    >>> plugrad.nn.functional.adaptive_max_pool2d_with_indices(image, 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return plugrad.adaptive_max_pool2d(input, _filled(input, output_size, 2))


@overridable
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that together cover a volume.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W), floating dtype.
        output_size: how many windows there are along D, H and W; None keeps the input's size.
        return_indices: whether to return as well where in its volume each value was found, counted
            row by row.

    Raises:
        ValueError: `input` has not more dimensions than `output_size`.
        RuntimeError: one of them has another number of dimensions.

    >>> import plugrad
    >>> plugrad.nn.functional.adaptive_max_pool3d(plugrad.ones(1, 3, 8, 6, 4), 2).shape
    plugrad.Size([1, 3, 2, 2, 2])
    """
    found, indices = plugrad.adaptive_max_pool3d(input, _filled(input, output_size, 3))
    return (found, indices) if return_indices else found


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with indices, whatever `return_indices` says.

    Args:
        input, output_size: see `adaptive_max_pool3d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> volume = plugrad.arange(8.0).reshape(1, 2, 2, 2)
    >>> plugrad.nn.functional.adaptive_max_pool3d_with_indices(volume, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return plugrad.adaptive_max_pool3d(input, _filled(input, output_size, 3))
