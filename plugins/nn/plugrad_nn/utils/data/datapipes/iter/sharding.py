"""ShardingFilter: of several readers each gets its share of the samples."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe


class SHARDING_PRIORITIES(enum.IntEnum):
    """The levels of sharding: each machine has a share, and each of its processes a part of
    that."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe[Any]):
    """Every n-th sample, after `apply_sharding`: a DataLoader calls that in each worker, so that
    together they read each sample once. `pipe.sharding_filter()`.

    Args:
        source_datapipe: the source.
        sharding_group_filter: the only kind of readers that share; None for all.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(5)).sharding_filter()
    >>> pipe.apply_sharding(2, 1)
    >>> list(pipe), len(pipe)
    ([1, 3], 2)
    """

    def __init__(
        self,
        source_datapipe: IterDataPipe[Any],
        sharding_group_filter: SHARDING_PRIORITIES | None = None,
    ) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Say how many readers there are, of one kind, and which of them this is.

        Raises:
            ValueError: `instance_id` is too large.
            RuntimeError: readers of the default kind, and others.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        others = self.groups.keys() - {default}
        if others if sharding_group == default else default in self.groups:
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._share()

    def _share(self) -> None:
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for position, sample in enumerate(self.source_datapipe):
            if position % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        total = len(self.source_datapipe)
        return len(range(self.instance_id, total, self.num_of_instances))
