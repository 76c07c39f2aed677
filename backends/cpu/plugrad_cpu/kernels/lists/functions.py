"""Functions of each array of a list, in one loop over NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.lists import fused_lists, update_lists
from plugrad_cpu.kernels import pointwise, special_functions

Array = Any
Kernel = Callable[..., Any]


def _add(a: Array, b: Array, factor: Any) -> None:
    np.add(a, b if factor == 1 else b * factor, out=a)


def _subtract(a: Array, b: Array, factor: Any) -> None:
    np.subtract(a, b if factor == 1 else b * factor, out=a)


def _add_product(a: Array, b: Array, c: Array, value: Any) -> None:
    np.add(a, b * c if value == 1 else b * value * c, out=a)


def _add_quotient(a: Array, b: Array, c: Array, value: Any) -> None:
    np.add(a, b / c if value == 1 else b * value / c, out=a)


_ON_ARRAYS: Final[dict[str, Kernel]] = {**special_functions.KERNELS, **pointwise.KERNELS}
_IN_PLACE: Final[dict[str, Kernel]] = {
    "add.Tensor": _add,
    "sub.Tensor": _subtract,
    "addcmul": _add_product,
    "addcdiv": _add_quotient,
}

KERNELS: Final[dict[str, Kernel]] = {
    "_fused_lists": fused_lists(_ON_ARRAYS),
    "_update_lists": update_lists(_ON_ARRAYS, np.copyto, _IN_PLACE),
}
