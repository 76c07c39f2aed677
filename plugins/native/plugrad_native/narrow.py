"""Kernels of bfloat16 from those of float32: what they read is widened, and what they make is cast.

Elementwise ones do that in pieces that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_native import compiled

Array = Any
Kernel = Callable[..., Any]

_FLOAT32: Final = np.dtype(np.float32)
# Elements of a piece.
_PIECE: Final = 1 << 15

_cast: Final = compiled.kernel("cast")
_cast_into: Final = compiled.kernel("cast_into")
_new: Final = compiled.kernel("new_like")


def by_pieces(kernel: Kernel, operands: int, into_first: bool = False) -> Kernel:
    """An elementwise kernel, of as many arrays as there are `operands`, and of other arguments.

    Args:
        into_first: write the result to the first array.
    """

    def run(*args: Any) -> Any:
        first, rest = args[0], args[operands:]
        for each in args[:operands]:
            if (
                type(each) is not np.ndarray
                or each.dtype is not first.dtype
                or each.shape != first.shape
                or not each.flags.c_contiguous
            ):
                return NotImplemented
        flat = [each.reshape(-1) for each in args[:operands]]
        out: Any = None
        for start in range(0, first.size, _PIECE):
            pieces = [_cast(each[start : start + _PIECE], _FLOAT32) for each in flat]
            made = kernel(*pieces, *rest)
            if made is NotImplemented:
                return NotImplemented  # before anything was written: pieces have one dtype
            if out is None:
                dtype = first.dtype if made.dtype is _FLOAT32 else made.dtype
                out = first if into_first else _new(first, dtype)
                target = out.reshape(-1)
            part = target[start : start + _PIECE]
            if part.dtype is made.dtype:
                part[...] = made
            else:
                _cast_into(made, part)
        return NotImplemented if out is None else out

    return run


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
