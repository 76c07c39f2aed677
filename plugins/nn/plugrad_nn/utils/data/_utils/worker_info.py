"""Information of a worker process about itself, and its memory for large arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(init=True, frozen=True)
class WorkerInfo:
    """The result of `get_worker_info`.

    Attributes:
        id: the number of the worker, from 0.
        num_workers: how many workers the loader has.
        seed: of this worker; it differs from worker to worker and from epoch to epoch.
        dataset: this worker's copy of the data set.
        rng: None; PyTorch has generators here for workers that are threads.
        worker_method: ``"multiprocessing"``.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


class _Here:
    """The worker that this process is, if it is one."""

    info: WorkerInfo | None = None
    allocate: Callable[[int], NDArray[np.uint8] | None] | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker process that this code runs in, or None in the main process.

    >>> from plugrad.utils.data import get_worker_info
    >>> print(get_worker_info())
    None
    """
    return _Here.info


def become_worker(info: WorkerInfo, allocate: Callable[[int], NDArray[np.uint8] | None]) -> None:
    """Have this process be a worker, which gets memory for its batches by `allocate`."""
    _Here.info = info
    _Here.allocate = allocate


def shared_array(shape: tuple[int, ...], dtype: Any) -> NDArray[Any] | None:
    """An array in memory shared with the main process; None if it is too small to be worthwhile."""
    if _Here.allocate is None:
        return None
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = _Here.allocate(size)
    return None if memory is None else memory.view(dtype).reshape(shape)
