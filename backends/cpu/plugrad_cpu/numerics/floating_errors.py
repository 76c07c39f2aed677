"""NumPy's handling of inf, nan and divisions by zero while kernels run.

NumPy stores it in a context variable, so kernels run in their own contexts, where it is set once.
`numpy.errstate` would take as long as a small kernel.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

import numpy as np

# What every kernel runs in: PyTorch gives inf and nan silently.
SILENT: Final = contextvars.Context()
SILENT.run(np.seterr, all="ignore")

_strict: Final = contextvars.Context()
_strict.run(np.seterr, all="ignore", divide="raise")
_run_strict: Final = _strict.run


def run_integer_division(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """`function(a, b)` on integers; RuntimeError in PyTorch's word for a zero in `b`."""
    try:
        try:
            return _run_strict(function, a, b)
        except RuntimeError:
            # A context can be entered once at a time, and another thread is in it.
            with np.errstate(all="ignore", divide="raise"):
                return function(a, b)
    except FloatingPointError:
        raise RuntimeError("ZeroDivisionError") from None
