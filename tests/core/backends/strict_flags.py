"""array-api-strict in the shapes in which other libraries come: older, or with less of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import array_api_strict

FLAGS: dict[str, dict[str, Any]] = {
    "newest": {},
    "2024.12": {"api_version": "2024.12"},
    "2023.12": {"api_version": "2023.12"},
    "without extensions": {"enabled_extensions": ()},
    "static shapes": {"data_dependent_shapes": False, "boolean_indexing": False},
    "the least": {
        "api_version": "2023.12",
        "enabled_extensions": (),
        "data_dependent_shapes": False,
        "boolean_indexing": False,
    },
}


@contextmanager
def strict(flags: str) -> Iterator[Any]:
    """The namespace with some of `FLAGS` set; they are the process' own."""
    array_api_strict.set_array_api_strict_flags(**FLAGS[flags])
    try:
        yield array_api_strict
    finally:
        array_api_strict.reset_array_api_strict_flags()
