"""Finds the line of a user's program that led here, on both the compiled and interpreted core."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def caller_outside_plugrad() -> FrameType | None:
    """The innermost frame of this thread whose module is not part of the core, or None.

    Compiled functions have no frames, so those of the interpreted core must not count either.
    """
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") == "threading":
        return None  # a thread that begins in plugrad
    return frame


def _is_ours(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith("<plugrad.codegen"):
        return True  # a plugin's operators
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and (name == "plugrad" or name.startswith("plugrad."))


def warn_at_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the user's line; once per line, as warnings are by default."""
    frame = caller_outside_plugrad()
    if frame is None:
        warnings.warn(text, category, stacklevel=1)
        return
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
