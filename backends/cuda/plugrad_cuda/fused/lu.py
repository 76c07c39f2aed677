"""Launches LU of batches of matrices, a block for each, and the row order that results."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad_cuda.fused.launching import INT64, Array, Launcher, over_elements
from plugrad_cuda.fused.runtime import Runtime

_CPP: Final = {
    "float32": "float",
    "float64": "double",
    "complex64": "complex64_t",
    "complex128": "complex128_t",
}
_INT32: Final = np.dtype(np.int32)
# Up to this order a block is used for a single matrix. With more matrices the order may be larger
# in proportion: a GPU has many blocks, and cuSOLVER uses all of them for one matrix.
_ORDER: Final = 64

EXPRESSIONS: Final = {"lu": ("row_order", *(f"lu_factor<{element}>" for element in _CPP.values()))}


def lu_factor(run: Runtime, a: Array, pivot: bool) -> Any:
    """Both factors in one array, row exchanges counted from 1, and the number of the first zero on
    the diagonal of U, or 0: (*, m, n) gives (*, m, n), (*, min(m, n)) and (*)."""
    element = _CPP.get(a.dtype.name)
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    count, k = math.prod(batch), min(m, n)
    if element is None or k > _ORDER * max(count, 1):
        return NotImplemented
    xp = run.xp
    factors, pivots = a.copy("C"), xp.empty((*batch, k), _INT32)
    info = xp.zeros(batch, _INT32)
    if factors.size:
        args = (factors, pivots, info, count, m, n, int(pivot))
        run.launch("lu", f"lu_factor<{element}>", count, (32, 8 if m <= _ORDER else 32), args)
    return factors, pivots, info


def row_order(run: Runtime, pivots: Array, rows: int) -> Array:
    """What row of the factorized matrix each row of L @ U is: (*, k) pivots give (*, rows). A
    pivot that is not a row ends the kernel."""
    batch, k = pivots.shape[:-1], pivots.shape[-1]
    order = run.xp.empty((*batch, rows), INT64)
    count = math.prod(batch)
    if order.size:
        grid, block = over_elements(count)
        contiguous = run.xp.ascontiguousarray(pivots)
        run.launch("lu", "row_order", grid, block, (contiguous, order, count, k, rows))
    return order


LAUNCHERS: Final[dict[str, Launcher]] = {"_linalg_lu_factor": lu_factor}
