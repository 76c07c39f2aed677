"""JAX's 64-bit switch: int64 always exists, float64 and complex128 only where it is on.

While `jax_enable_x64` is off, JAX makes int32 of every int64 that a function meets, and plugrad's
indices are int64. So kernels then run with the switch on, on their thread and only while they run.
Within a trace by other code the switch stays as it is: one program cannot be traced in two ways.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.core
import jax.extend.core

from plugrad.plugins import Kernel

WIDE_DTYPES: Final = ("float64", "complex128")

_trace_state: Final[Callable[[], Any]] = jax.extend.core.get_opaque_trace_state

with jax.core.eval_context():
    _outside_of_traces: Final = _trace_state()


def is_tracing() -> bool:
    """Whether this thread is inside a function that JAX traces: `jit`, `grad`, `vmap`, ..."""
    return bool(_trace_state() != _outside_of_traces)


def is_wide() -> bool:
    """Whether float64 exists: JAX's switch as it is set for the process."""
    return bool(jax.enable_x64.get_global())


def missing_dtype(name: str) -> TypeError:
    """The message about float64 and complex128 while they are off."""
    return TypeError(
        f"plugrad.{name} is not supported on 'jax' while JAX's 64-bit numbers are off: set "
        "JAX_ENABLE_X64=1 or x64 = true under [backends.jax] in plugrad.toml, or call "
        "jax.config.update('jax_enable_x64', True), before the first use of JAX"
    )


def in_64_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with JAX's 64-bit switch on, unless it is called inside a trace."""

    @functools.wraps(function)
    def wide(*args: Any) -> Any:
        if jax.enable_x64.value or is_tracing():
            return function(*args)
        with jax.enable_x64(True):
            return function(*args)

    return wide


def wide_kernels(kernels: dict[str, Kernel]) -> dict[str, Kernel]:
    """Kernels that do not depend on the switch when they are called.

    Where it is on already they stay bare, since the wrapper costs a sixth of a small kernel.
    """
    if is_wide():
        return kernels
    return {name: in_64_bits(kernel) for name, kernel in kernels.items()}
