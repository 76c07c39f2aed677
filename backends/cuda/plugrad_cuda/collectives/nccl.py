"""CuPy's NCCL module, and NCCL's names of dtypes and reductions."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Final

import numpy as np

from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["BYTES", "module", "reduction"]

# What NCCL calls bytes: it moves anything as such.
BYTES: Final = "NCCL_UINT8"

_DTYPES: Final = {
    "int8": "NCCL_INT8",
    "uint8": "NCCL_UINT8",
    "int32": "NCCL_INT32",
    "uint32": "NCCL_UINT32",
    "int64": "NCCL_INT64",
    "uint64": "NCCL_UINT64",
    "float16": "NCCL_FLOAT16",
    "bfloat16": "NCCL_BFLOAT16",
    "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
}
_OPERATIONS: Final = {
    ReduceOp.SUM: "NCCL_SUM",
    ReduceOp.PRODUCT: "NCCL_PROD",
    ReduceOp.MIN: "NCCL_MIN",
    ReduceOp.MAX: "NCCL_MAX",
}
# Of bools, which are bytes of 0 and 1.
_OF_BOOLS: Final = {
    ReduceOp.SUM: "NCCL_MAX",
    ReduceOp.PRODUCT: "NCCL_MIN",
    ReduceOp.MIN: "NCCL_MIN",
    ReduceOp.MAX: "NCCL_MAX",
    ReduceOp.BAND: "NCCL_MIN",
    ReduceOp.BOR: "NCCL_MAX",
}
# A complex number is two numbers, for sums alone.
_PARTS: Final = {"complex64": "NCCL_FLOAT32", "complex128": "NCCL_FLOAT64"}


def module() -> Any:
    """CuPy's module.

    Raises:
        ImportError: CuPy is not installed, or does not find NCCL.
    """
    with warnings.catch_warnings():
        # CuPy only warns.
        warnings.simplefilter("ignore")
        found = importlib.import_module("cupy.cuda.nccl")
    if not found.available:
        raise ImportError(
            "CuPy does not find the library NCCL: pip install nvidia-nccl-cu12, or "
            "nvidia-nccl-cu13, whichever CUDA CuPy is for"
        )
    return found


def reduction(op: ReduceOp, dtype: np.dtype[Any]) -> tuple[int, int, int] | None:
    """What NCCL calls the dtype and the reduction, and how many numbers an element is; None for
    what it cannot do, as bits of integers."""
    parts = 1
    if dtype.kind == "b":
        kind, named = "NCCL_UINT8", _OF_BOOLS.get(op)
    elif dtype.kind == "c":
        kind, named, parts = _PARTS[dtype.name], None, 2
        if op is ReduceOp.SUM:
            named = "NCCL_SUM"
    else:
        kind, named = _DTYPES.get(dtype.name, ""), _OPERATIONS.get(op)
    if not kind or named is None:
        return None
    found = module()
    return getattr(found, kind), getattr(found, named), parts
