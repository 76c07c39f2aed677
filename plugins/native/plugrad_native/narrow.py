"""Kernels of bfloat16 from those of float32, with casts of what they read and make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_native import compiled

Kernel = Callable[..., Any]

_FLOAT32: Final = np.dtype(np.float32)
_cast: Final = compiled.kernel("cast")


def whole(kernel: Kernel, widening: int = -1) -> Kernel:
    """A kernel of arrays that are widened as a whole; of its results the first one is cast.

    Args:
        widening: the position of an argument which says that the result is not cast.
    """

    def run(*args: Any) -> Any:
        dtype = args[0].dtype
        if widening >= 0 and args[widening]:
            return NotImplemented
        wide = []
        for each in args:
            found = each
            if type(each) is np.ndarray and each.dtype is dtype:
                found = _cast(each, _FLOAT32)
            elif isinstance(each, np.dtype):
                found = _FLOAT32 if each is dtype else NotImplemented
            if found is NotImplemented:
                return NotImplemented
            wide.append(found)
        made = kernel(*wide)
        if type(made) is tuple:
            return _cast(made[0], dtype), *made[1:]
        return made if made is NotImplemented else _cast(made, dtype)

    return run
