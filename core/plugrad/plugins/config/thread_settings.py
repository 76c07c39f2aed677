"""`plugrad.set_num_threads` and `get_num_threads`."""

from __future__ import annotations

# Interpreted: loaded on demand.
import operator

from plugrad.plugins.activation import load_backend
from plugrad.plugins.config import threads


def set_num_threads(int: int, /) -> None:
    """Let one operator use this many threads of the processor.

    Backends that compute on the processor obey it, with the libraries that they call: BLAS, say.
    It counts before `num_threads` of the configuration and `PLUGRAD_NUM_THREADS`.

    Args:
        int: how many, from 1 on.

    Raises:
        RuntimeError: it is not an integer, or below 1.

    >>> import plugrad
    >>> before = plugrad.get_num_threads()
    >>> plugrad.set_num_threads(1)
    >>> plugrad.get_num_threads()
    1
    >>> plugrad.set_num_threads(before)
    """
    given: object = int
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(given).__name__}")
    count = operator.index(given)
    if count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    threads.allow(count)


def get_num_threads() -> int:
    """How many threads of the processor one operator of the cpu may use.

    >>> import plugrad
    >>> plugrad.get_num_threads() >= 1
    True
    """
    return load_backend("cpu").num_threads()
