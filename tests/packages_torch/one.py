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


def main(name: str, file: str) -> None:
    """Run a program of `programs/` from seed 0."""
    import torch
    from training import numbers

    warnings.simplefilter("ignore")
    (path,) = Path(__file__).parent.glob(f"programs/*/{name}.py")
    program: Any = importlib.import_module(f"programs.{path.parent.name}.{name}")
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    found = [np.asarray(tensor.cpu().numpy()) for tensor in numbers(list(program.run()))]
    np.savez(file, *found)


if __name__ == "__main__":
    main(*sys.argv[1:])
