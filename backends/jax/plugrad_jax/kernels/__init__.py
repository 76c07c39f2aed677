"""Raw kernels on JAX arrays, one module per operator family; each has a dict KERNELS."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def all_kernels() -> dict[str, Callable[..., Any]]:
    """The union of the modules' KERNELS; RuntimeError if two define the same operator."""
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        table: dict[str, Callable[..., Any]] = getattr(module, "KERNELS", {})
        twice = found.keys() & table.keys()
        if twice:
            raise RuntimeError(f"{module.__name__} defines again: {', '.join(sorted(twice))}")
        found.update(table)
    return found
