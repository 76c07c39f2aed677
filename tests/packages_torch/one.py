"""Runs one program and writes its numbers: `python one.py NAME FILE`.

Which library `torch` is, the caller decides: `python -m plugrad.as_torch one.py ...` or not.
"""

from __future__ import annotations

import importlib
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

# torchvision needs these operators when it is imported. Its own are compiled for one build of
# PyTorch, so neither library has them, and the programs do not use them.
_OF_TORCHVISION = ("nms", "qnms")


def main(name: str, file: str) -> None:
    """Run a program of `programs/` from seed 0."""
    import torch
    from training import numbers

    warnings.simplefilter("ignore")
    for operator in _OF_TORCHVISION:
        schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        torch.library.define(f"torchvision::{operator}", schema)
    (path,) = Path(__file__).parent.glob(f"programs/*/{name}.py")
    program: Any = importlib.import_module(f"programs.{path.parent.name}.{name}")
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    found = [np.asarray(tensor.cpu().numpy()) for tensor in numbers(list(program.run()))]
    np.savez(file, *found)


if __name__ == "__main__":
    main(*sys.argv[1:])
