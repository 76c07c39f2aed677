"""The layout of a group's parameters in one flat tensor.

    a rank's shards                  gathered: a row for each rank
    | a₀ | b₀ | c₀ |                 | a₀ | b₀ | c₀ |
                                     | a₁ | b₁ | c₁ |
Parts of a parameter have the same length on all ranks: the last ones are padded at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plugrad import Tensor
from plugrad_distributed.tensor.placement import part_of

__all__ = ["Layout", "Slot"]

Allocate = Callable[[int], Tensor]


@dataclass(frozen=True)
class Slot:
    """The slot of one parameter in flat tensors.

    Attributes:
        shape: the shape of the whole.
        dim: the dimension along which it is cut.
        count: the number of ranks that have parts.
    """

    shape: tuple[int, ...]
    dim: int
    count: int

    @property
    def part(self) -> tuple[int, ...]:
        """The shape of the first rank's part, which is the largest."""
        return self.part_of(0)

    def part_of(self, rank: int) -> tuple[int, ...]:
        """The shape of a rank's part."""
        shape = list(self.shape)
        shape[self.dim] = part_of(shape[self.dim], self.count, rank)[0]
        return tuple(shape)

    @property
    def numel(self) -> int:
        """The number of a rank's elements in a flat tensor."""
        return math.prod(self.part)

    def joined(self, rows: Tensor) -> Tensor:
        """The whole parameter from its (count, numel) elements."""
        length = self.shape[self.dim]
        part = self.part
        if self.dim:
            # Parts of one length, side by side along the dimension.
            return rows.reshape(self.count, *part).movedim(0, self.dim).reshape(self.shape)
        whole: Tensor = rows.reshape(self.count * part[0], *part[1:])
        return whole if whole.shape[0] == length else whole[:length]

    def cut(self, whole: Tensor, rows: Tensor) -> None:
        """Write the whole to its (count, numel) elements."""
        if self.dim:
            before, after = self.shape[: self.dim], self.shape[self.dim + 1 :]
            parts = whole.reshape(*before, self.count, -1, *after).movedim(self.dim, 0)
            rows.copy_(parts.reshape(self.count, self.numel))
            return
        each = self.part[0]
        full = self.shape[0] // each if each else 0
        if full:
            rows[:full].copy_(whole[: full * each].reshape(full, -1))
        if full < self.count:
            rows[full:].zero_()
            rest = whole[full * each :]
            if rest.numel():
                rows[full, : rest.numel()].copy_(rest.reshape(-1))


class Layout:
    """The order and slots of some parameters in flat tensors."""

    def __init__(self, slots: Sequence[Slot], count: int) -> None:
        self.slots = list(slots)
        self.count = count
        self.size = sum(slot.numel for slot in self.slots)

    def _places(self) -> Iterator[tuple[Slot, slice]]:
        start = 0
        for slot in self.slots:
            end = start + slot.numel
            yield slot, slice(start, end)
            start = end

    def join_shards(self, shards: Sequence[Tensor], allocate: Allocate) -> Tensor:
        """A rank's parts, concatenated."""
        flat = allocate(self.size)
        for shard, (_, place) in zip(shards, self._places(), strict=True):
            end = place.start + shard.numel()
            flat[place.start : end].copy_(shard.reshape(-1))
            if end < place.stop:
                flat[end : place.stop].zero_()
        return flat

    def split_shards(self, flat: Tensor, rank: int) -> list[Tensor]:
        """A rank's parts, as views, without their padding."""
        found = []
        for slot, place in self._places():
            shape = slot.part_of(rank)
            found.append(flat[place.start : place.start + math.prod(shape)].view(shape))
        return found

    def split_gathered(self, flat: Tensor) -> list[Tensor]:
        """The whole parameters from a row for each rank."""
        rows = flat.view(self.count, self.size)
        return [slot.joined(rows[:, place]) for slot, place in self._places()]

    def join_wholes(self, wholes: list[Any], allocate: Allocate) -> Tensor:
        """A row for each rank from whole parameters; empties the list to free their memory."""
        flat = allocate(self.count * self.size)
        rows = flat.view(self.count, self.size)
        wholes.reverse()
        for slot, place in self._places():
            slot.cut(wholes.pop(), rows[:, place])
        return flat
