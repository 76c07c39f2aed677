"""Whether a model runs for an export."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _State(threading.local):
    exports = 0


_STATE = _State()


def is_in_onnx_export() -> bool:
    """Whether this thread runs a model to export it. A model can use it to compute differently in
    an exported file.

    >>> import plugrad
    >>> plugrad.onnx.is_in_onnx_export()
    False
    """
    return _STATE.exports > 0


@contextmanager
def exporting() -> Iterator[None]:
    """A block in which `is_in_onnx_export` is true."""
    _STATE.exports += 1
    try:
        yield
    finally:
        _STATE.exports -= 1
