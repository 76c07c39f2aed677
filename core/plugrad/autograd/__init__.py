"""Automatic differentiation: `backward`, `grad`, `Function`, grad modes."""

from __future__ import annotations

import importlib
from typing import Any

from plugrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from plugrad.autograd.function import Function
from plugrad.autograd.grad_mode import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from plugrad.autograd.run_backward import backward, grad

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    """`gradcheck` and `gradgradcheck`, from the test kit, which is two floors up and not loaded."""
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(importlib.import_module("plugrad.testing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
