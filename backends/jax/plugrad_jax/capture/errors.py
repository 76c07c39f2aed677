"""What a captured step cannot do, said with the user's line."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Final

import jax


class CaptureError(RuntimeError):
    """A function cannot be captured as it is written.

    Nothing has changed when it is raised: all tensors, gradients and optimizers are as they were
    before the call.
    """


ADVICE = (
    "A captured step runs without Python, so values of tensors are not known while it is traced. "
    "Choose between values with plugrad.where, return the tensor from the step and look at it "
    "outside, or leave this part out of the step."
)

# What code of these packages does, it does for the user.
LIBRARIES: Final = frozenset(
    (
        *("builtins", "functools", "collections", "contextlib", "jax", "jaxlib", "numpy", "optree"),
        *("plugrad", "plugrad_cpu", "plugrad_jax", "plugrad_nn", "plugrad_special"),
    )
)


def user_line(trace: TracebackType | None) -> str:
    """The innermost line of the traceback that is neither plugrad's nor JAX's."""
    found = ""
    while trace is not None:
        frame = trace.tb_frame
        path = frame.f_code.co_filename
        home = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if home not in LIBRARIES and not path.startswith("<frozen"):
            line = linecache.getline(path, trace.tb_lineno).strip()
            found = f"{path}:{trace.tb_lineno}" + (f": {line}" if line else "")
        trace = trace.tb_next
    return found


def needs_a_value(error: BaseException) -> bool:
    """Whether an error says that Python asked for a value that tracing does not know."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (jax.errors.JAXTypeError, jax.errors.JAXIndexError)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def no_value(error: BaseException, name: str) -> CaptureError:
    """The error for a function that needs a value, with the line that asks for it."""
    line = user_line(error.__traceback__)
    return CaptureError(
        f"{name}: the step depends on the value of a tensor"
        + (f", at {line}" if line else "")
        + f". {ADVICE}"
    )
