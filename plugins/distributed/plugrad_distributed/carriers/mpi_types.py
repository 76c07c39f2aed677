"""MPI's names for NumPy's dtypes and for reductions, and substitutes for those without a name."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad_distributed.carriers.carrier import Array
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["TYPES", "as_moved", "as_reduced", "reduction", "types_of_sums"]

_OPERATIONS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
# For bools, as NumPy's functions with these names define it.
_OF_BOOLS = {
    ReduceOp.SUM: "LOR",
    ReduceOp.PRODUCT: "LAND",
    ReduceOp.MIN: "LAND",
    ReduceOp.MAX: "LOR",
    ReduceOp.BAND: "LAND",
    ReduceOp.BOR: "LOR",
    ReduceOp.BXOR: "LXOR",
}
_INTEGERS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}
# By NumPy's codes; bools are separate, because they have their own sums.
TYPES = {
    "b": "SIGNED_CHAR",
    "B": "UNSIGNED_CHAR",
    "h": "SHORT",
    "H": "UNSIGNED_SHORT",
    "i": "INT",
    "I": "UNSIGNED",
    "l": "LONG",
    "L": "UNSIGNED_LONG",
    "q": "LONG_LONG",
    "Q": "UNSIGNED_LONG_LONG",
    "f": "FLOAT",
    "d": "DOUBLE",
    "F": "C_FLOAT_COMPLEX",
    "D": "C_DOUBLE_COMPLEX",
}
_KNOWN = frozenset(map(np.dtype, ["?", *TYPES]))


def as_moved(array: Array) -> Array:
    """The same memory as an array that MPI can move: dtypes unknown to MPI are viewed as
    integers."""
    if array.dtype in _KNOWN:
        return array
    moved: Array = array.view(_INTEGERS[array.dtype.itemsize])
    return moved


def as_reduced(array: Array) -> Array:
    """The array itself; if MPI does not support its dtype, such as float16, a copy in float32,
    which also makes sums more precise."""
    return array if array.dtype in _KNOWN else array.astype(np.float32)


def reduction(mpi: Any, op: ReduceOp, dtype: np.dtype[Any]) -> Any:
    """MPI's name for a reduction of a dtype; `mpi` is the module `mpi4py.MPI`."""
    return getattr(mpi, (_OF_BOOLS if dtype.kind == "b" else _OPERATIONS)[op])


def types_of_sums(mpi: Any) -> dict[np.dtype[Any], Any]:
    """MPI's types for the dtypes that it sums with `SUM`."""
    return {np.dtype(code): getattr(mpi, name) for code, name in TYPES.items()}
