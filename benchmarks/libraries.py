"""The compared libraries that are installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import PLUGRAD, TORCH

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Library:
    """A library with PyTorch's names."""

    name: str
    module: Any

    def leaf(self, array: Array) -> Any:
        """A tensor with its own memory that accumulates gradients."""
        return self.constant(array).requires_grad_()

    def constant(self, array: Array) -> Any:
        return self.reading(array.copy())

    def reading(self, array: Array) -> Any:
        """A tensor in the memory of `array`, which other libraries may read, too.

        How fast memory is depends on where it lies.
        """
        return self.module.from_numpy(array)


def libraries() -> list[Library]:
    """plugrad, and PyTorch if it is installed."""
    found = [Library(PLUGRAD, importlib.import_module("plugrad"))]
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        found.append(Library(TORCH, torch))
    return found
