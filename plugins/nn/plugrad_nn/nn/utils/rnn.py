"""Sequences of several lengths in one tensor: padded, or packed without the padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences, longest first, laid out by time: all first elements, then all second ones, ...

    `pack_sequence` and `pack_padded_sequence` make it; recurrent layers take it and return it.

    Args:
        data: (sum of lengths, ...).
        batch_sizes: int64 on the CPU: how many sequences there are at each time.
        sorted_indices: where each sequence was before they were sorted by length.
        unsorted_indices: the inverse permutation; worked out if it is not given.

    >>> import plugrad
    >>> from plugrad.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([plugrad.tensor([1, 2, 3]), plugrad.tensor([4, 5])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 5, 3], [2, 2, 1])
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """As `Tensor.to`; the indices move along, and the batch sizes stay on the CPU.

        >>> import plugrad
        >>> from plugrad.nn.utils.rnn import pack_sequence
        >>> packed = pack_sequence([plugrad.ones(3), plugrad.ones(2)])
        >>> packed.to(plugrad.float64).data.dtype
        plugrad.float64
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            indices if indices is None else indices.to(data.device)
            for indices in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves it to the CPU; further arguments are passed to `Tensor.to`.

        >>> import plugrad
        >>> from plugrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([plugrad.ones(3), plugrad.ones(2)]).cpu().data.device
        device(type='cpu')
        """
        return self.to(*args, **kwargs).to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves it to the GPU; further arguments are passed to `Tensor.to`."""
        moved = self.to(*args, **kwargs)
        return moved if moved.is_cuda else moved.to("cuda")

    def pin_memory(self) -> PackedSequence:
        """A copy in memory that a GPU reads without a detour."""
        pinned = [
            indices if indices is None else indices.pin_memory()
            for indices in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *pinned)

    def is_pinned(self) -> bool:
        """Whether `pin_memory` made it."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU.

        >>> import plugrad
        >>> from plugrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([plugrad.ones(3), plugrad.ones(2)]).is_cuda
        False
        """
        return bool(self.data.is_cuda)

    def double(self) -> PackedSequence:
        """With elements of float64.

        >>> import plugrad
        >>> from plugrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([plugrad.ones(3), plugrad.ones(2)]).double().data.dtype
        plugrad.float64
        """
        return self.to(dtype=plugrad.float64)

    def float(self) -> PackedSequence:
        """With elements of float32."""
        return self.to(dtype=plugrad.float32)

    def half(self) -> PackedSequence:
        """With elements of float16."""
        return self.to(dtype=plugrad.float16)

    def long(self) -> PackedSequence:
        """With elements of int64."""
        return self.to(dtype=plugrad.int64)

    def int(self) -> PackedSequence:
        """With elements of int32."""
        return self.to(dtype=plugrad.int32)

    def short(self) -> PackedSequence:
        """With elements of int16."""
        return self.to(dtype=plugrad.int16)

    def char(self) -> PackedSequence:
        """With elements of int8."""
        return self.to(dtype=plugrad.int8)

    def byte(self) -> PackedSequence:
        """With elements of uint8."""
        return self.to(dtype=plugrad.uint8)


@explains
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`; None for None.

    Args:
        permutation: (N), each of the numbers from 0 to N - 1 once.

    >>> import plugrad
    >>> plugrad.nn.utils.rnn.invert_permutation(plugrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = plugrad.arange(permutation.numel(), device=permutation.device)
    return plugrad.empty_like(permutation).scatter_(0, permutation, places)


@explains
def pack_padded_sequence(
    input: Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (T, B, ...), with `batch_first` (B, T, ...).
        lengths: of the sequences, B integers on the CPU.
        batch_first: whether the batch is the first dimension of `input`.
        enforce_sorted: refuse sequences that are not sorted by length, longest first; if False,
            they are sorted here, and the result contains their order.

    Raises:
        RuntimeError: there are not B lengths, one is 0 or less, or they are not sorted.

    >>> import plugrad
    >>> padded = plugrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]])
    >>> packed = plugrad.nn.utils.rnn.pack_padded_sequence(padded, [3, 2], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1.0, 4.0, 2.0, 5.0, 3.0], [2, 2, 1])
    """
    lengths = plugrad.as_tensor(lengths, dtype=plugrad.int64)
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if lengths.dim() != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device.type} Long tensor"
        )
    counts = lengths.tolist()
    if batch_first:
        input = input.transpose(0, 1)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={input.shape[1]})"
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(after > before for before, after in pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if counts[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {input.shape[0]}, the padded length, got {counts[0]}"
        )
    # At time t the sequences longer than t are left.
    sizes = [sum(count > time for count in counts) for time in range(counts[0])]
    rows = [time * len(counts) + place for time, size in enumerate(sizes) for place in range(size)]
    index = plugrad.tensor(rows, device=input.device)
    data = input.flatten(0, 1).index_select(0, index)
    return PackedSequence(data, plugrad.tensor(sizes), order)


@explains
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`: padded sequences in their first order, and lengths.

    The sequences are (T, B, ...), with `batch_first` (B, T, ...); T is `total_length`, or by
    default the length of the longest. ValueError if `total_length` is less than that.

    Args:
        sequence: as packing made it.
        batch_first: whether the batch comes first in the result.
        padding_value: the value at the ends of shorter sequences.
        total_length: T.

    >>> import plugrad
    >>> from plugrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([plugrad.ones(2), plugrad.ones(1)])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 1.],
            [1., 0.]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    total = len(sizes) if total_length is None else total_length
    if total < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {len(sizes)}"
        )
    data, batch = sequence.data, sizes[0]
    rows = [time * batch + place for time, size in enumerate(sizes) for place in range(size)]
    index = plugrad.tensor(rows, device=data.device)
    padding = data.new_full((total * batch, *data.shape[1:]), padding_value)
    padded = padding.index_copy(0, index, data).unflatten(0, (total, batch))
    lengths = plugrad.tensor([sum(size > place for size in sizes) for place in range(batch)])
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


@explains
def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L_i, ...) as one tensor (T, B, ...), with `batch_first` (B, T, ...).

    T is the length of the longest; the others get `padding_value` at the "right" or "left" end.

    Args:
        sequences: tensors (L_i, ...) of one shape, except for the first dimension.
        batch_first: whether the batch comes first in the result.
        padding_value: the value at the ends of shorter sequences.
        padding_side: "right" or "left".

    >>> import plugrad
    >>> from plugrad.nn.utils.rnn import pad_sequence
    >>> pad_sequence([plugrad.ones(1), plugrad.ones(3)], batch_first=True)
    tensor([[1., 0., 0.],
            [1., 1., 1.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(sequence.shape[0] for sequence in given)
    rest = tuple(given[0].shape[1:])
    padded = []
    for sequence in given:
        missing = longest - sequence.shape[0]
        if not missing:
            padded.append(sequence.to(given[0].dtype).expand(longest, *rest))
            continue
        filler = given[0].new_full((missing, *rest), padding_value)
        ends = (filler, sequence) if padding_side == "left" else (sequence, filler)
        padded.append(plugrad.cat(ends).to(given[0].dtype))
    return plugrad.stack(padded, 0 if batch_first else 1)


@explains
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The first `lengths[i]` elements of each of the sequences (T, B, ...) or (B, T, ...).

    Args:
        padded_sequences: (T, B, ...), with `batch_first` (B, T, ...).
        lengths: (B), integers.
        batch_first: whether the batch comes first.

    >>> import plugrad
    >>> padded = plugrad.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> plugrad.nn.utils.rnn.unpad_sequence(padded, plugrad.tensor([2, 1]), batch_first=True)
    [tensor([1., 2.]), tensor([3.])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths.tolist(), strict=True)]


@explains
def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (L_i, ...), longest first unless `enforce_sorted` is False.

    Args:
        sequences: tensors (L_i, ...).
        enforce_sorted: refuse sequences that are not sorted by length.

    >>> import plugrad
    >>> from plugrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> short, long = plugrad.ones(1), plugrad.zeros(2)
    >>> packed = pack_sequence([short, long], enforce_sorted=False)
    >>> packed.data.tolist()
    [0.0, 1.0, 0.0]
    >>> [sequence.tolist() for sequence in unpack_sequence(packed)]
    [[1.0], [0.0, 0.0]]
    """
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@explains
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`.

    Args:
        packed_sequences: as `pack_sequence` made it.

    >>> import plugrad
    >>> from plugrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([plugrad.ones(2), plugrad.zeros(1)]))
    [tensor([1., 1.]), tensor([0.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
