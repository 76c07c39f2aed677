"""What the launchers share: C++ names of dtypes, sizes of grids and blocks, fallbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from plugrad_cuda.fused.runtime import Runtime

Array = Any
Kernel = Callable[..., Any]
Launcher = Callable[..., Any]

# C++ types of the dtypes that the kernels compute with, by name; bfloat16 is ml_dtypes'.
CPP: Final = {
    "float64": "double",
    "float32": "float",
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
}
FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)
INT64: Final = np.dtype(np.int64)

_ROW: Final = 32
_WIDEST: Final = 1024
_THREADS: Final = 256
# Blocks of an elementwise launch: more than any GPU runs at a time, so that a block goes round.
_BLOCKS: Final = 1 << 16
# Positions up to here, and a step beyond, fit into 31 bits.
_FITS: Final = 1 << 30


def cpp(a: Array) -> str | None:
    """The C++ type of an array's elements; None if the kernels do not compute with it."""
    return CPP.get(a.dtype.name)


def wide(dtype: Any) -> Any:
    """The dtype of accumulators."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def accumulator(dtype: Any) -> str:
    """The C++ type of accumulators."""
    return "double" if dtype == FLOAT64 else "float"


def over_rows(rows: int, width: int) -> tuple[int, tuple[int, int]]:
    """Grid and block for one row per 32 threads, or per block where rows are long."""
    if width <= _WIDEST:
        return (rows + 3) // 4, (_ROW, 4)
    threads = min(_WIDEST, (width // 4 + _ROW - 1) // _ROW * _ROW)
    return rows, (threads, 1)


def over_columns(outer: int, inner: int) -> tuple[int, tuple[int, int]]:
    """Grid and block for strips of 32 neighbouring columns, each read by 8 threads."""
    return outer * ((inner + _ROW - 1) // _ROW), (_ROW, 8)


def over_elements(count: int) -> tuple[int, tuple[int, int]]:
    """Grid and block for a loop over elements."""
    return min((count + _THREADS - 1) // _THREADS, _BLOCKS), (_THREADS, 1)


def in_one_block(count: int) -> tuple[int, int]:
    """The threads of a block that goes over `count` elements alone."""
    return min(_WIDEST, max(_ROW, (count + _ROW - 1) // _ROW * _ROW)), 1


def bound(run: Runtime, launcher: Launcher, otherwise: Kernel | None) -> Kernel:
    """A kernel from a launcher; `otherwise` takes what that returns NotImplemented for."""

    def kernel(*args: Any) -> Any:
        found = launcher(run, *args)
        if found is not NotImplemented:
            return found
        if otherwise is None:
            names = ", ".join(a.dtype.name for a in args if hasattr(a, "dtype"))
            raise NotImplementedError(f"{launcher.__name__} is not implemented on CUDA for {names}")
        return otherwise(*args)

    return kernel


def bind(
    run: Runtime, launchers: Mapping[str, Launcher], otherwise: Mapping[str, Kernel]
) -> dict[str, Kernel]:
    """The kernels of a table of launchers, by operator."""
    return {name: bound(run, launcher, otherwise.get(name)) for name, launcher in launchers.items()}


def index_type(*sizes: int) -> str:
    """The C++ type of positions below these sizes: divisions of 64 bits are slow on a GPU."""
    return "int" if max(sizes, default=0) < _FITS else "i64"
