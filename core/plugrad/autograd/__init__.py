"""Automatic differentiation: `backward`, `grad`, `Function`, grad modes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plugrad.autograd import graph
from plugrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from plugrad.autograd.function import Function, NestedIOFunction
from plugrad.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from plugrad.autograd.gradients import calculate_shape as _calculate_shape
from plugrad.autograd.run_backward import backward, grad
from plugrad.autograd.variable import Variable
from plugrad.autograd.variable.version_counter import _unsafe_preserve_version_counter
from plugrad.autograd.variable.view_replay import (
    _force_original_view_tracking,
    is_view_replay_enabled,
)
from plugrad.graph.saved_tensor import SavedTensor

if TYPE_CHECKING:
    # What `__getattr__` loads.
    from plugrad.autograd import forward_ad as forward_ad
    from plugrad.autograd import functional as functional
    from plugrad.autograd import profiler as profiler
    from plugrad.testing import gradcheck as gradcheck  # type: ignore[no-redef]  # a module, too
    from plugrad.testing import gradgradcheck as gradgradcheck

__all__ = [
    "Function",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "_calculate_shape",
    "_force_original_view_tracking",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "functional",
    "grad",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "kineto_available",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def variable(*args: Any, **kwargs: Any) -> Any:
    """What tensors were made with once; raises.

    Raises:
        RuntimeError: always.

    >>> import plugrad
    >>> plugrad.autograd.variable([1.0])
    Traceback (most recent call last):
        ...
    RuntimeError: plugrad.autograd.variable(...) is deprecated, use plugrad.tensor(...) instead
    """
    raise RuntimeError(
        "plugrad.autograd.variable(...) is deprecated, use plugrad.tensor(...) instead"
    )


def kineto_available() -> bool:
    """True: the profiler records events by itself; there is no other one to fall back on.

    >>> import plugrad
    >>> plugrad.autograd.kineto_available()
    True
    """
    return True


def _is_checkpoint_valid() -> bool:
    return bool(Variable._execution_engine.is_checkpoint_valid())


# The function hides the module of the same name, but its Variable is imported from there.
setattr(variable, "Variable", Variable)  # noqa: B010  # functions declare no attributes


def __getattr__(name: str) -> Any:
    """What is loaded when it is first used: `functional`; the profiler; forward mode; `gradcheck`
    and `gradgradcheck`, from the test kit, which is two layers up; and SavedTensor."""
    if name == "gradcheck":
        return importlib.import_module("plugrad.autograd.gradcheck")
    if name == "gradgradcheck":
        return importlib.import_module("plugrad.testing").gradgradcheck
    if name in ("forward_ad", "functional", "profiler", "profiler_util"):
        return importlib.import_module(f"plugrad.autograd.{name}")
    if name == "SavedTensor":
        return importlib.import_module("plugrad.graph.saved_tensor").SavedTensor
    if name == "_profiler_enabled":
        return importlib.import_module("plugrad.autograd.profiler").is_recording
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_MODULES = (
    *("anomaly_mode", "checkpoint", "forward_ad", "function", "functional", "grad_mode"),
    *("gradcheck", "gradgradcheck", "graph", "profiler", "profiler_util"),
)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
