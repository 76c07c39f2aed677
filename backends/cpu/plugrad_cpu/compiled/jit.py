"""How loops are compiled, and the operations that numba has no name for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
from numba import float32, int32
from numba.extending import intrinsic

if getattr(numba.config, "USING_SVML", False):
    raise ImportError("numba would take logarithms of Intel's SVML, which round otherwise")

_OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop that is compiled at its first call, for the types that it gets, and kept on disk."""
    return _compiled(function, _OPTIONS)


def compiled_with(*fast: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same with LLVM's flags for how results may differ from what is written, "contract" for
    example: a product may go into a sum without being rounded before."""
    return lambda function: _compiled(function, {**_OPTIONS, "fastmath": set(fast)})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    made: Callable[..., Any]
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # No folder can be written to: each process compiles for itself.
        made = numba.njit(**options)(function)
    return made


def _fused(context: Any, x: Any, y: Any, z: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return x(x, x, x), generate


# x * y + z of three numbers of one dtype, rounded once.
fused: Final[Callable[..., Any]] = intrinsic(_fused)


def _bitcast(target: Any) -> Callable[..., Any]:
    def typed(context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(x), generate

    made: Callable[..., Any] = intrinsic(typed)
    return made


# A float32 as the int32 of the same bits, and the other way round.
bits_of: Final = _bitcast(int32)
float_of: Final = _bitcast(float32)
