"""Calls as messages show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Described"]


class Described:
    """A call as messages show it: text that is made only where a message needs it."""

    __slots__ = ("_dtype", "_more", "_name", "_shape")

    def __init__(self, name: str, dtype: Any, shape: Sequence[int], more: str) -> None:
        self._name = name
        self._dtype = dtype
        self._shape = shape
        self._more = more

    def __str__(self) -> str:
        more = f", {self._more}" if self._more else ""
        return f"{self._name}({self._dtype} {list(self._shape)}{more})"
