"""The record that holds autocast's state on a thread; `autocast.py` reads and replaces it."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dtype import DType


@final
class AutocastState:
    """It is replaced, never changed, except for its cache, since device threads share it with the
    thread that they work for.

    Attributes:
        enabled: by device type the dtype that operators run in; others are not autocast.
        dtypes: by device type the dtype that was chosen for it, whether enabled or not.
        cache_enabled: whether casts of leaves are kept.
        nesting: how many regions the thread is in.
        cache: by identity of a tensor and index of a dtype the tensor, so that it stays alive, and
            its cast.
    """

    def __init__(
        self,
        enabled: dict[str, DType],
        dtypes: dict[str, DType],
        cache_enabled: bool,
        nesting: i64,
        cache: dict[tuple[int, int], Any],
    ) -> None:
        self.enabled = enabled
        self.dtypes = dtypes
        self.cache_enabled = cache_enabled
        self.nesting: i64 = nesting
        self.cache = cache
        self._off: AutocastState | None = None

    def off(self) -> AutocastState:
        """The same without any backend for which it is on: within what was autocast already."""
        made = self._off
        if made is None:
            made = AutocastState({}, self.dtypes, self.cache_enabled, self.nesting, self.cache)
            self._off = made
        return made
