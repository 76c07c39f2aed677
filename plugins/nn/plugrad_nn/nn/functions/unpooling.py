"""Fractional pooling, unpooling, fold and unfold, which `functional` exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.convolution import IntOrPair, repeated
from plugrad_nn.nn.overridable import overridable


def _fractional(
    spatial: int,
    input: Tensor,
    kernel_size: IntOrPair,
    output_size: IntOrPair | None,
    output_ratio: float | Sequence[float] | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{spatial}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        ratios = tuple(output_ratio) if isinstance(output_ratio, Sequence) else (output_ratio,)
        if len(ratios) == 1:
            ratios *= spatial
        if len(ratios) != spatial:
            raise ValueError(f"{name} requires one output_ratio or {spatial}, got {ratios}")
        sizes = [input.size(i - spatial) for i in range(spatial)]
        output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
    if samples is None:
        count = 1 if input.ndim == spatial + 1 else input.size(0)
        shape = (count, input.size(-spatial - 1), spatial)
        samples = plugrad.rand(shape, dtype=input.dtype, device=input.device)
    pool = plugrad.fractional_max_pool2d if spatial == 2 else plugrad.fractional_max_pool3d
    return pool(input, kernel_size, output_size, samples)


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    output_size: IntOrPair | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest values of windows at random distances.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        output_size: how many windows there are along each dimension.
        output_ratio: or how many for each element of the input, between 0 and 1.
        return_indices: whether to return as well where in its image each value was found.
        _random_samples: (N, C, 2), the numbers in [0, 1) that windows are placed by.

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: shapes do not fit.

    Source: Graham, Fractional Max-Pooling, 2014.

    >>> import plugrad
    >>> image = plugrad.ones(1, 3, 8, 8)
    >>> plugrad.nn.functional.fractional_max_pool2d(image, 2, output_ratio=(0.75, 0.75)).shape
    plugrad.Size([1, 3, 6, 6])
    """
    found, indices = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return (found, indices) if return_indices else found


@overridable
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrPair,
    output_size: IntOrPair | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with indices, whatever `return_indices` says.

    Args:
        input, kernel_size, output_size, output_ratio: see `fractional_max_pool2d`.
        return_indices: has no effect.
        _random_samples: see `fractional_max_pool2d`.

    >>> import plugrad
    >>> image = plugrad.ones(1, 3, 8, 8)
    >>> pool = plugrad.nn.functional.fractional_max_pool2d_with_indices
    >>> found, indices = pool(image, 2, output_size=3)
    >>> indices.shape
    plugrad.Size([1, 3, 3, 3])
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: IntOrPair,
    output_size: IntOrPair | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest values of windows at random distances.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        output_size: how many windows there are along each dimension.
        output_ratio: or how many for each element of the input, between 0 and 1.
        return_indices: whether to return as well where in its volume each value was found.
        _random_samples: (N, C, 3), the numbers in [0, 1) that windows are placed by.

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: shapes do not fit.

    Source: Graham, Fractional Max-Pooling, 2014.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 3, 8, 8, 8)
    >>> plugrad.nn.functional.fractional_max_pool3d(volume, 2, output_ratio=(0.75, 0.75, 0.5)).shape
    plugrad.Size([1, 3, 6, 6, 4])
    """
    found, indices = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return (found, indices) if return_indices else found


@overridable
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrPair,
    output_size: IntOrPair | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with indices, whatever `return_indices` says.

    Args:
        input, kernel_size, output_size, output_ratio: see `fractional_max_pool3d`.
        return_indices: has no effect.
        _random_samples: see `fractional_max_pool3d`.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 3, 8, 8, 8)
    >>> pool = plugrad.nn.functional.fractional_max_pool3d_with_indices
    >>> found, indices = pool(volume, 2, output_size=4)
    >>> indices.shape
    plugrad.Size([1, 3, 4, 4, 4])
    """
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def _unpooled_sizes(
    input: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    wanted: Sequence[int] | None,
) -> list[int]:
    """The sizes before pooling; `wanted` selects one if several are possible."""
    spatial = len(kernel)
    sizes = [input.size(i - spatial) for i in range(spatial)]
    usual = [(sizes[i] - 1) * stride[i] + kernel[i] - 2 * padding[i] for i in range(spatial)]
    found = usual
    if wanted is not None:
        given = list(wanted)
        found = given[2:] if len(given) == spatial + 2 else given
        if len(found) != spatial:
            raise ValueError(
                f"output_size should be a sequence containing {spatial} or {spatial + 2} elements, "
                f"but it has a length of '{len(found)}'"
            )
        for i in range(spatial):
            least, most = usual[i] - stride[i], usual[i] + stride[i]
            if not least < found[i] < most:
                raise ValueError(
                    f'invalid output_size "{wanted}" (dim {i} must be between {least} and {most})'
                )
    for i, size in enumerate(found):
        if size < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{i}]={size}"
            )
    return found


@overridable
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool1d` where they were found.

    Args:
        input: (N, C, L) or (C, L), the maxima.
        indices: the indices from `max_pool1d` with `return_indices=True`.
        kernel_size, stride, padding: the pooling's.
        output_size: the size of the result, if pooling maps several to the same one.

    Raises:
        ValueError: `output_size` does not fit.
        RuntimeError: shapes do not fit, or an index is outside of the result.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> found, indices = plugrad.nn.functional.max_pool1d(signal, 2, return_indices=True)
    >>> plugrad.nn.functional.max_unpool1d(found, indices, 2)
    tensor([[0., 3., 7., 0.]])
    """
    kernel, pad = repeated(kernel_size, 1), repeated(padding, 1)
    step = kernel if stride is None else repeated(stride, 1)
    sizes = _unpooled_sizes(input, kernel, step, pad, output_size)
    return plugrad.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)


@overridable
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool2d` where they were found.

    Args:
        input: (N, C, H, W) or (C, H, W), the maxima.
        indices: the indices from `max_pool2d` with `return_indices=True`.
        kernel_size, stride, padding: the pooling's.
        output_size: the size of the result, if pooling maps several to the same one.

    Raises:
        ValueError: `output_size` does not fit.
        RuntimeError: shapes do not fit, or an index is outside of the result.

    >>> import plugrad
    >>> image = plugrad.arange(4.0).reshape(1, 2, 2)
    >>> found, indices = plugrad.nn.functional.max_pool2d(image, 2, return_indices=True)
    >>> plugrad.nn.functional.max_unpool2d(found, indices, 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """
    kernel, pad = repeated(kernel_size, 2), repeated(padding, 2)
    step = kernel if stride is None else repeated(stride, 2)
    sizes = _unpooled_sizes(input, kernel, step, pad, output_size)
    return plugrad.max_unpool2d(input, indices, sizes)


@overridable
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool3d` where they were found.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W), the maxima.
        indices: the indices from `max_pool3d` with `return_indices=True`.
        kernel_size, stride, padding: the pooling's.
        output_size: the size of the result, if pooling maps several to the same one.

    Raises:
        ValueError: `output_size` does not fit.
        RuntimeError: shapes do not fit, or an index is outside of the result.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 3, 4, 8, 8)
    >>> found, indices = plugrad.nn.functional.max_pool3d(volume, 2, return_indices=True)
    >>> plugrad.nn.functional.max_unpool3d(found, indices, 2).shape
    plugrad.Size([1, 3, 4, 8, 8])
    """
    kernel, pad = repeated(kernel_size, 3), repeated(padding, 3)
    step = kernel if stride is None else repeated(stride, 3)
    sizes = _unpooled_sizes(input, kernel, step, pad, output_size)
    return plugrad.max_unpool3d(input, indices, sizes, step, pad)


@overridable
def unfold(
    input: Tensor,
    kernel_size: IntOrPair,
    dilation: IntOrPair = 1,
    padding: IntOrPair = 0,
    stride: IntOrPair = 1,
) -> Tensor:
    """The windows of images (N, C, H, W) or (C, H, W) as columns (N, C * kH * kW, windows).

    Args:
        input: (N, C, H, W) or (C, H, W), floating dtype; the result of the latter has no dimension
            N.
        kernel_size, dilation, padding, stride: of the windows, as of `conv2d`.

    Raises:
        RuntimeError: `input` has another number of dimensions, or no window fits.

    >>> import plugrad
    >>> image = plugrad.arange(6.0).reshape(1, 2, 3)
    >>> plugrad.nn.functional.unfold(image, 2).tolist()
    [[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]
    """
    return plugrad.im2col(input, kernel_size, dilation, padding, stride)


@overridable
def fold(
    input: Tensor,
    output_size: IntOrPair,
    kernel_size: IntOrPair,
    dilation: IntOrPair = 1,
    padding: IntOrPair = 0,
    stride: IntOrPair = 1,
) -> Tensor:
    """Columns summed at the positions of their windows: the transpose of `unfold`.

    Args:
        input: (N, C * kH * kW, windows), or without N.
        output_size: (H, W) of the result, which is (N, C, H, W), or without N; an integer gives
            both.
        kernel_size, dilation, padding, stride: of the windows, as of `conv2d`.

    Raises:
        RuntimeError: there is another number of windows, or of elements in each.

    >>> import plugrad
    >>> columns = plugrad.ones(1, 4, 2)
    >>> plugrad.nn.functional.fold(columns, (2, 3), 2).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]
    """
    return plugrad.col2im(input, output_size, kernel_size, dilation, padding, stride)
