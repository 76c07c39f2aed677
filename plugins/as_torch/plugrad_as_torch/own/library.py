"""`torch.library`: what packages register for operators that were compiled for PyTorch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
from plugrad_as_torch.own.ops import is_refused

__all__ = ["register_fake"]


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`plugrad.library.register_fake`. Nothing is registered for an operator of a package whose
    compiled operators `torch.ops.load_library` has refused: nobody can call it.

    Raises:
        RuntimeError: another operator that is not there.
    """
    if isinstance(op, str) and is_refused(op):
        return (lambda function: function) if func is None else func
    register: Any = plugrad.library.register_fake
    return register(op, **options) if func is None else register(op, func, **options)
