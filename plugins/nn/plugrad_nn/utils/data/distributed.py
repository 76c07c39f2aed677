"""DistributedSampler: the share of a data set that one of several processes reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

import plugrad
from plugrad_nn.processes import distributed_package
from plugrad_nn.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from `rank` on: the share of one of several processes.

    All shares have one length. Indices from the start are repeated to fill the last ones up; with
    `drop_last` the last indices are left out instead.

    Args:
        dataset: the data set, which has a length.
        num_replicas: how many processes there are; by default from `plugrad.distributed`.
        rank: the number of this process, from 0; by default from `plugrad.distributed`.
        shuffle: a random order, the same in all processes, which `set_epoch` renews.
        seed: of that order.
        drop_last: see above.

    Raises:
        RuntimeError: `num_replicas` or `rank` is left out, and plugrad-distributed not installed.
        ValueError: one is left out before `init_process_group`, or there is no process of that
            number.

    >>> from plugrad.utils.data import DistributedSampler
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            package = distributed_package()
            if package is None:
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = package.get_world_size() if num_replicas is None else num_replicas
            rank = package.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        total = len(dataset)
        self.num_samples = total // num_replicas if drop_last else math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        order = self._order()
        if not self.drop_last and order:
            repeats = math.ceil(self.total_size / len(order))
            order = order * repeats
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def _order(self) -> list[Any]:
        total = len(self.dataset)
        if not self.shuffle:
            return list(range(total))
        generator = plugrad.Generator().manual_seed(self.seed + self.epoch)
        order: list[Any] = plugrad.randperm(total, generator=generator, device="cpu").tolist()
        return order

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which the order depends on.

        >>> from plugrad.utils.data import DistributedSampler
        >>> sampler = DistributedSampler(range(6), num_replicas=2, rank=0)
        >>> first = list(sampler)
        >>> sampler.set_epoch(1)
        >>> first == list(sampler)
        False
        """
        self.epoch = epoch
