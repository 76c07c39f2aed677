"""Runs NumPy functions without its floating point warnings: PyTorch gives inf and nan silently.

`numpy.errstate` costs as much as a small kernel. NumPy keeps that state in a context variable, so
entering a `contextvars.Context` in which it is set already does the same for a tenth of the price.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Function = Callable[..., Any]

_silent: Final = contextvars.copy_context()
_silent.run(np.seterr, all="ignore")
_run_silent: Final = _silent.run

_strict: Final = contextvars.copy_context()
_strict.run(np.seterr, all="ignore", divide="raise")
_run_strict: Final = _strict.run


# Whole kernels have one of their own: parts of them enter the other.
_kernels: Final = contextvars.copy_context()
_kernels.run(np.seterr, all="ignore")
_run_kernel: Final = _kernels.run


def quiet_kernel(function: Function) -> Function:
    """A whole kernel that warns of nothing, whatever its parts are.

    Its own RuntimeErrors pass: it does not run again, as it may have written already.
    """

    def kernel(*args: Any) -> Any:
        try:
            return _run_kernel(function, *args)
        except RuntimeError as error:
            if not str(error).startswith("cannot enter context"):
                raise
        with np.errstate(all="ignore"):
            return function(*args)

    return kernel


def run_quiet(function: Function, *args: Any) -> Any:
    """`function(*args)` without warnings."""
    try:
        return _run_silent(function, *args)
    except RuntimeError:
        # A context can be entered once at a time: another thread is in it, or an outer kernel.
        with np.errstate(all="ignore"):
            return function(*args)


def quiet(function: Function) -> Function:
    """A kernel of any number of arguments that warns of nothing."""

    def kernel(*args: Any) -> Any:
        try:
            return _run_silent(function, *args)
        except RuntimeError:
            with np.errstate(all="ignore"):
                return function(*args)

    return kernel


def quiet_unary(function: Function) -> Function:
    """`quiet` for one argument: spelled out because small arrays feel a star-call."""

    def kernel(a: Any) -> Any:
        try:
            return _run_silent(function, a)
        except RuntimeError:
            with np.errstate(all="ignore"):
                return function(a)

    return kernel


def quiet_binary(function: Function) -> Function:
    """`quiet` for two arguments."""

    def kernel(a: Any, b: Any) -> Any:
        try:
            return _run_silent(function, a, b)
        except RuntimeError:
            with np.errstate(all="ignore"):
                return function(a, b)

    return kernel


def run_integer_division(function: Function, a: Any, b: Any) -> Any:
    """`function(a, b)` on integers; RuntimeError in PyTorch's word for a zero in `b`."""
    try:
        try:
            return _run_strict(function, a, b)
        except RuntimeError:
            with np.errstate(all="ignore", divide="raise"):
                return function(a, b)
    except FloatingPointError:
        raise RuntimeError("ZeroDivisionError") from None
