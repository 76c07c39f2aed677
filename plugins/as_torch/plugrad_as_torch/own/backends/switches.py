"""Several switches of one module, set at once: its `flags` and `set_flags`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def set_switches(module: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Set all switches of a module of `torch.backends` that are not None; returns the previous
    values of all."""
    home = importlib.import_module(f"torch.backends.{module}")
    before = tuple(getattr(home, name) for name in values)
    for name, value in values.items():
        if value is not None:
            setattr(home, name, value)
    return before


@contextmanager
def switched(module: str, values: Mapping[str, Any]) -> Iterator[None]:
    """A block in which switches of a module have these values."""
    before = set_switches(module, values)
    try:
        yield
    finally:
        set_switches(module, dict(zip(values, before, strict=True)))
