"""Tools for tests: gradcheck, assert_close, a naive engine, random graphs."""

from __future__ import annotations

from plugrad.testing.assert_close import assert_close
from plugrad.testing.engines.naive import NaiveEngine, naive_backward, naive_grad
from plugrad.testing.gradcheck import gradcheck, gradgradcheck
from plugrad.testing.gradcheck.jacobians import GradcheckError
from plugrad.testing.make_tensor import make_tensor

__all__ = [
    "GradcheckError",
    "NaiveEngine",
    "assert_close",
    "gradcheck",
    "gradgradcheck",
    "make_tensor",
    "naive_backward",
    "naive_grad",
]
