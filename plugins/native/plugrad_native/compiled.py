"""The compiled kernels for this processor, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from plugrad import config
from plugrad.plugins import get_manager

# The CPU features that each module needs, by the backend's names; the best module comes first.
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "_avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl"),
    "_avx2": ("avx2", "fma3"),
    "_portable": (),
}


def _found() -> tuple[str, ModuleType | None, str]:
    """The best module that the processor can run and the configuration allows; if there is none,
    the reason. With `cpu_capability = "default"`, it is what would be used without."""
    allowed = config.get("cpu_capability")
    here = get_manager().backend("cpu").features("" if allowed == "default" else allowed)
    reason = ""
    for name, needs in NEEDS.items():
        if not all(here.get(feature, False) for feature in needs):
            continue
        try:
            module = import_module(f"plugrad_native.{name}")
            module.use_thread_count(get_manager().backend("cpu").num_threads)
            return name, module, ""
        except ImportError as error:
            reason = f"its C code is not compiled ({error}): install it with a C compiler"
    return "_portable", None, reason


name, _module, _reason = _found()


def problem() -> str:
    """Why the kernels cannot be used; empty if they can."""
    return _reason


def _declines(*args: Any) -> Any:
    return NotImplemented


def kernel(function: str) -> Callable[..., Any]:
    """A compiled kernel; if there are none, one that declines every call."""
    found: Callable[..., Any] = getattr(_module, function, _declines)
    return found
