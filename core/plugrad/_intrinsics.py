"""Functions that the compiled core has in C, in `core/intrinsics.c`.

Every operator calls them, and mypyc would compile them to calls of Python functions. This module
defines what they do; the interpreted core runs it.
"""

from __future__ import annotations

import threading
from typing import Any, Final, final

from mypy_extensions import i64


def thread_number() -> i64:
    """The calling thread's number, of `threading.get_ident()`."""
    return i64(threading.get_ident())


def array_dtype(array: Any) -> Any:
    """`array.dtype`."""
    return array.dtype


def array_shape(array: Any) -> Any:
    """`array.shape`."""
    return array.shape


def array_strides(array: Any) -> Any:
    """`array.strides`."""
    return array.strides


@final
class _Held:
    def __init__(self) -> None:
        self.native: Any = object


_held: Final = _Held()


def hold_tensor_class(cls: Any, native: Any) -> None:
    """From now on tensors are of class `cls`, and its native base class `native` makes them."""
    _held.native = native


def new_tensor(cls: Any) -> Any:
    """A tensor of a class without contents, made as `cls.__new__(cls)` of the native class does."""
    return _held.native.__new__(cls)
