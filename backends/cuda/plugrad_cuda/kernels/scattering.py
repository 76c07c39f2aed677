"""Adding at places that may occur more than once, which takes CUDA's atomicAdd."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cuda.kernels.family import FLOAT32, is_bfloat16
from plugrad_cuda.kernels.namespace import ATOMIC, Array, Namespace

_UINT64: Final = np.dtype(np.uint64)
_INT32: Final = np.dtype(np.int32)


def add_at(ns: Namespace, target: Array, where: Any, values: Array) -> None:
    """Adds to `target[where]` as often as a position occurs.

    Sums of 64-bit integers are the same bits with and without a sign; smaller ones, bools and
    bfloat16, which the hardware does not add, are added in a copy.
    """
    dtype = target.dtype
    if dtype.name in ATOMIC:
        ns.scatter_add(target, where, values)
    elif dtype.name == "int64":
        ns.scatter_add(target.view(_UINT64), where, values.astype(dtype).view(_UINT64))
    else:
        wide = FLOAT32 if is_bfloat16(target) else _INT32
        total = target.astype(wide)
        ns.scatter_add(total, where, values.astype(wide))
        ns.xp.copyto(target, total, casting="unsafe")
