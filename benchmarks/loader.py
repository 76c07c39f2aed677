"""A data loader with two worker processes: images of 3 x 224 x 224, from the data set to the batch.

It measures one pass over the data set with persistent workers, until each batch is delivered. Later
work on a batch is not included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import Library, libraries
from benchmarks.measure import TORCH, Budget, Effort, Row, interleave

WORKERS = 2
BATCH = 32
BATCHES = 12
# The number of different images, which are read repeatedly.
IMAGES = 16
LIMIT = 1.0

Pixels = NDArray[np.uint8]


def pixels() -> Pixels:
    """Images as in files: height, width, colour."""
    return np.random.default_rng(0).integers(0, 256, (IMAGES, 224, 224, 3), dtype=np.uint8)


def ready(library: Library, images: Pixels) -> Callable[[int], Any]:
    """Images that are read without conversion."""
    tensors = library.module.from_numpy(
        np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / 255
    )
    return lambda index: tensors[index % IMAGES]


def converted(library: Library, images: Pixels) -> Callable[[int], Any]:
    """Images that NumPy converts to tensors, as a transform does."""
    from_numpy = library.module.from_numpy
    scale = np.float32(1 / 255)

    def read(index: int) -> Any:
        return from_numpy(images[index % IMAGES].transpose(2, 0, 1) * scale)

    return read


def epoch(library: Library, read: Callable[[int], Any], count: int) -> Callable[[], object]:
    """One pass over the data set."""
    data: Any = library.module.utils.data

    class Images(data.Dataset):  # type: ignore[misc]  # only known at run time
        def __getitem__(self, index: int) -> tuple[Any, int]:
            return read(index), index % 10

        def __len__(self) -> int:
            return count * BATCH

    loader = data.DataLoader(
        Images(), BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )

    def run() -> None:
        labels: Iterator[Any] = (labels for _, labels in loader)
        if sum(len(some) for some in labels) != count * BATCH:
            raise AssertionError("the loader has lost samples")

    return run


def run(effort: Effort) -> list[Row]:
    images = pixels()
    count = 2 if effort.smoke else BATCHES
    rows = []
    for name, reader in (("float32 tensors", ready), ("from uint8 by NumPy", converted)):
        contestants = {
            library.name: epoch(library, reader(library, images), count) for library in libraries()
        }
        samples = interleave(contestants, effort, units=count)
        case = f"{BATCH} images of 3 x 224 x 224, {name}, {WORKERS} workers"
        rows.append(Row("loader", case, "us per batch", samples, Budget(LIMIT, TORCH)))
    return rows
