"""The entries of PyTorch's table of optimizers, by name."""

from __future__ import annotations

from typing import Any

from torch.testing._internal.common_optimizers import optim_db

DTYPES = ("float64", "float32", "bfloat16", "float16", "complex64")


def entries() -> dict[str, Any]:
    """All entries, by names such as ``Adam``."""
    return {entry.optim_cls.__name__: entry for entry in optim_db}
