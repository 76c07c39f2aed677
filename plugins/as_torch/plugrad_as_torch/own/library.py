"""`torch.library`: what packages register for operators that were compiled for PyTorch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
from plugrad_as_torch.own.ops import is_refused

__all__ = ["register_fake", "triton_op"]


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


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """`plugrad.library.custom_op`: there is no compiler that would look into the function, and only
    for that PyTorch makes a difference. May be a decorator."""
    return plugrad.library.custom_op(name, fn, mutates_args=mutates_args, schema=schema)
