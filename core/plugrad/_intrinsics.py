"""Functions that the compiled core has in C, in `core/intrinsics.c` and `core/records.c`.

Every operator calls them, or every operator of a recording, and mypyc would compile them to calls
of Python functions. This module defines what they do; the interpreted core runs it.
"""

from __future__ import annotations

import threading
import time
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


def array_base(array: Any) -> Any:
    """`array.base`; None for an array without that attribute."""
    return getattr(array, "base", None)


def array_nbytes(array: Any) -> i64:
    """`array.nbytes`; -1 if that is no `int`, or for an array without that attribute."""
    nbytes = getattr(array, "nbytes", None)
    return nbytes if type(nbytes) is int else -1


@final
class _Held:
    def __init__(self) -> None:
        self.native: Any = object


_held: Final = _Held()


def hold_tensor_class(cls: Any, native: Any) -> None:
    """Set the class of new tensors, and its native base class, which makes them."""
    _held.native = native


def new_tensor(cls: Any) -> Any:
    """A tensor of a class without contents, made as `cls.__new__(cls)` of the native class does."""
    return _held.native.__new__(cls)


# Records of these kinds and above have the time of `time.perf_counter_ns()`, the others have 0.
FIRST_TIMED: Final = 16


def new_log() -> Any:
    """An empty log of records, for the functions below."""
    return []


def log0(log: Any, kind: i64, a: i64, b: i64) -> None:
    """Append a record to a log: its kind, from 0 to 255, and two numbers."""
    log.append((kind, _time(kind), a, b))


def log1(log: Any, kind: i64, a: i64, b: i64, x: Any) -> None:
    """Append a record of two numbers and an object, which must not lead to the log."""
    log.append((kind, _time(kind), a, b, x))


def log2(log: Any, kind: i64, a: i64, b: i64, c: i64, d: i64, x: Any, y: Any) -> None:
    """Append a record of four numbers and two objects."""
    log.append((kind, _time(kind), a, b, c, d, x, y))


def log4(
    log: Any, kind: i64, a: i64, b: i64, c: i64, d: i64, x: Any, y: Any, z: Any, w: Any
) -> None:
    """Append a record of four numbers and four objects."""
    log.append((kind, _time(kind), a, b, c, d, x, y, z, w))


def logged(log: Any) -> list[tuple[Any, ...]]:
    """The records of a log: the kind, the time or 0, the numbers, the objects."""
    return list(log)


def _time(kind: i64) -> i64:
    """The time of a record."""
    return time.perf_counter_ns() if kind >= FIRST_TIMED else 0
