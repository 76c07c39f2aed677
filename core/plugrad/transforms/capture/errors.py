"""Errors for code that cannot be captured and calls that a graph does not fit, with the user's
line."""

from __future__ import annotations

import linecache
from types import FrameType

from plugrad.dispatch.caller import caller_outside_plugrad


class CaptureError(RuntimeError):
    """A function cannot be captured as it is written; tensors are what they were before."""


class GuardError(RuntimeError):
    """A graph was captured for other arguments, or in another mode, than it is called with."""


def user_line() -> str:
    """The line of the user's program that runs just now, with its place; "" if there is none."""
    frame: FrameType | None = caller_outside_plugrad()
    # What layers and optimisers do, they do for the user.
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("plugrad"):
        frame = frame.f_back
    if frame is None:
        return ""
    path = frame.f_code.co_filename
    line = linecache.getline(path, frame.f_lineno).strip()
    return f"{path}:{frame.f_lineno}" + (f": {line}" if line else "")


def at_line(line: str) -> str:
    """A closing clause for a message."""
    return f", at {line}" if line else ""
