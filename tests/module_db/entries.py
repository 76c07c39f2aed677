"""The entries of PyTorch's table of modules, by name."""

from __future__ import annotations

from typing import Any

from torch.testing._internal.common_modules import module_db

# PyTorch's own tests use the first two, and complex128 for some entries. An entry's samples in the
# others are compared as far as PyTorch computes them.
DTYPES = ("float64", "float32", "bfloat16", "float16", "complex128", "complex64")


def entries() -> dict[str, Any]:
    """All entries, by names such as ``Linear``."""
    return {entry.module_cls.__name__: entry for entry in module_db}
