"""Errors for what a captured step cannot do, with the user's line."""

from __future__ import annotations

import linecache
import sys
from types import FrameType, TracebackType

import jax

from plugrad.plugins.compiling.roots import LIBRARIES


class CaptureError(RuntimeError):
    """A function cannot be captured as it is written.

    Nothing has changed when it is raised: all tensors, gradients and optimizers are as they were
    before the call.
    """


class ValueAsked(CaptureError):
    """Python read the values of a tensor that existed before the step."""

    def __init__(self, tensor: str) -> None:
        super().__init__(
            f"the value of {tensor} would be a constant of the program, even if it changes: read "
            "it outside, and pass the number as an argument"
        )


ADVICE = (
    "A captured step runs without Python, so values of tensors are not known while it is traced. "
    "Choose between values with plugrad.where, return the tensor from the step and look at it "
    "outside, or leave this part out of the step."
)


def user_line(trace: TracebackType | None) -> str:
    """The innermost line of the traceback that is neither plugrad's nor JAX's."""
    found = ""
    while trace is not None:
        found = _line(trace.tb_frame, trace.tb_lineno) or found
        trace = trace.tb_next
    return found


def calling_line() -> str:
    """The innermost line that runs just now and is neither plugrad's nor JAX's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found = _line(frame, frame.f_lineno)
        if found:
            return found
        frame = frame.f_back
    return ""


def _line(frame: FrameType, number: int) -> str:
    """A line of the user's with its place; nothing if it is a library's."""
    path = frame.f_code.co_filename
    home = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if home in LIBRARIES or path.startswith("<frozen"):
        return ""
    line = linecache.getline(path, number).strip()
    return f"{path}:{number}" + (f": {line}" if line else "")


def needs_a_value(error: BaseException) -> bool:
    """Whether an error means that Python read a value that is unknown while tracing."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (ValueAsked, jax.errors.JAXTypeError, jax.errors.JAXIndexError)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def no_value(error: BaseException, name: str) -> CaptureError:
    """The error for a function that needs a value, with the line that reads it."""
    line = user_line(error.__traceback__)
    return CaptureError(
        f"{name}: the step depends on the value of a tensor"
        + (f", at {line}" if line else "")
        + (f"; {error}. " if isinstance(error, ValueAsked) else ". ")
        + ADVICE
    )
