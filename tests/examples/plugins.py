"""The plugins among the examples, as if they were installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plugrad.plugins import get_manager

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("numbers", "strict")


@contextmanager
def example_plugins() -> Iterator[None]:
    """Register the examples' backends temporarily, unless they are installed."""
    manager = get_manager()
    added: list[str] = []
    for name in NAMES:
        if name in manager.discovered():
            continue
        folder = str(EXAMPLES / f"backend_{name}")
        sys.path.append(folder)
        try:
            module = importlib.import_module(f"plugrad_{name}.plugin")
        finally:
            sys.path.remove(folder)
        manager.register(module, name)
        added.append(name)
    try:
        yield
    finally:
        for name in added:
            manager.unregister(name)
