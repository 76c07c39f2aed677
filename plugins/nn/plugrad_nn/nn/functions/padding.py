"""pad: constant, reflecting, replicating and circular padding, built from cat and index_select."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import plugrad
from plugrad import Tensor
from plugrad.plugins.allocation import check_memory
from plugrad.plugins.kernel_errors import not_implemented
from plugrad_nn.nn.overridable import overridable

# PyTorch's names of the kernels.
_KERNELS = {"reflect": "reflection", "replicate": "replication"}


@overridable
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pads the last dimensions of `input`.

    Args:
        input: any shape; with modes but "constant", one or two dimensions more than are padded.
        pad: (left, right) of the last dimension, then of the one before it, and so on; a negative
            number crops.
        mode: "constant", "reflect", "replicate" or "circular".
        value: the constant, 0 by default.

    Raises:
        RuntimeError: `pad` has an odd length or is too long, or is too large for `mode`; or `value`
            is
            given with another mode than "constant".
        NotImplementedError: `mode` is unknown, or not for this number of dimensions.

    >>> import plugrad
    >>> plugrad.nn.functional.pad(plugrad.tensor([1, 2, 3]), (1, 1), mode="constant").tolist()
    [0, 1, 2, 3, 0]
    """
    # NumPy's small integers have no negatives.
    widths = tuple(map(index, pad))
    if len(widths) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(widths)}")
    if len(widths) > 2 * input.ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(widths)} and input of dimension {input.ndim}"
        )
    if mode != "constant" and value not in (None, 0.0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode != "constant":
        _check_supported(input, widths, mode)
    _check_sizes(input, widths)
    result = input
    for step in range(len(widths) // 2):
        before, after = widths[2 * step], widths[2 * step + 1]
        dim = input.ndim - 1 - step
        if before or after:
            result = (
                _pad_constant(result, dim, before, after, 0.0 if value is None else value)
                if mode == "constant"
                else _pad_by_index(result, dim, before, after, mode)
            )
    # The result is always a new tensor, even without padding.
    added = max(widths, default=0) > 0 or (mode != "constant" and any(widths))
    return result if added else result.clone()


def _check_sizes(input: Tensor, widths: tuple[int, ...]) -> None:
    """RuntimeError if no memory can hold the result, or the indices that it is made with."""
    count = input.element_size()
    indices = 0
    for dim, size in enumerate(input.shape):
        step = input.ndim - 1 - dim
        grown = size + sum(widths[2 * step : 2 * step + 2])
        indices = max(indices, grown)
        count *= max(grown, 0)
    check_memory(count + 48 * indices if count else 0)


def _check_supported(input: Tensor, widths: tuple[int, ...], mode: str) -> None:
    """One, two or three dimensions after batch and channels; one of the latter may be missing."""
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    padded = len(widths) // 2
    if padded not in (1, 2, 3) or input.ndim - padded not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {input.ndim}D input tensor."
        )
    if mode != "circular":
        if input.dtype is plugrad.bool:
            raise not_implemented(f"{_KERNELS[mode]}_pad{padded}d", input.dtype)
        if 0 in tuple(input.shape)[-padded - 1 :]:
            raise RuntimeError(
                f"Expected {padded + 1}D or {padded + 2}D (batch mode) tensor with possibly 0 "
                "batch size and other non-zero dimensions for input, but got: "
                f"{list(input.shape)}"
            )


def _pad_constant(tensor: Tensor, dim: int, before: int, after: int, value: float) -> Tensor:
    size = tensor.shape[dim]
    start, stop = max(0, -before), size + min(0, after)
    kept = tensor if (start, stop) == (0, size) else tensor.narrow(dim, start, stop - start)

    def block(width: int) -> Tensor:
        shape = [*tensor.shape[:dim], width, *tensor.shape[dim + 1 :]]
        return plugrad.full(shape, value, dtype=tensor.dtype, device=tensor.device)

    parts = [kept]
    if before > 0:
        parts.insert(0, block(before))
    if after > 0:
        parts.append(block(after))
    return plugrad.cat(parts, dim=dim) if len(parts) > 1 else kept


def _pad_by_index(tensor: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    size = tensor.shape[dim]
    if mode != "circular" and size + before + after < 1:
        raise RuntimeError(
            f"input (size: {size}) is too small. Calculated output size: {size + before + after}"
        )
    positions = range(-before, size + after)
    if mode == "replicate":
        indices = [min(max(position, 0), size - 1) for position in positions]
    elif mode == "reflect":
        if max(before, after) >= size:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {dim} of input "
                f"{list(tensor.shape)}"
            )
        last = size - 1
        indices = [last - abs(last - abs(position)) for position in positions]
    else:
        # Cropping comes first, then the rest wraps around.
        first, kept = max(-before, 0), size + min(before, 0) + min(after, 0)
        if max(before, after) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0 or (kept <= 0 and max(before, after) > 0):
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        indices = [
            first + position % kept for position in range(-max(before, 0), kept + max(after, 0))
        ]
    return tensor.index_select(
        dim, plugrad.tensor(indices, dtype=plugrad.int64, device=tensor.device)
    )
