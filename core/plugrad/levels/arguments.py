"""Finds the tensors among an operator's arguments and results, and replaces them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.tensor.base import TensorBase
from plugrad.tensor.levels import Level, is_at, living, make_level_tensor, value_at


def tensors_of(values: tuple[Any, ...]) -> list[TensorBase]:
    """The tensors among arguments, those in lists included."""
    found: list[TensorBase] = []
    for value in values:
        if isinstance(value, TensorBase):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, TensorBase):
                    found.append(item)  # noqa: PERF401  # compiled: a loop is as quick
    return found


def replace_tensors(
    values: tuple[Any, ...], change: Callable[[TensorBase], TensorBase]
) -> tuple[Any, ...]:
    """The arguments with `change(tensor)` in the place of every tensor."""
    made: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            made.append(change(value))
        elif isinstance(value, (list, tuple)) and _has_tensor(value):
            items = [change(item) if isinstance(item, TensorBase) else item for item in value]
            made.append(tuple(items) if isinstance(value, tuple) else items)
        else:
            made.append(value)
    return tuple(made)


def _has_tensor(items: Any) -> bool:
    for item in items:  # noqa: SIM110  # needs no generator
        if isinstance(item, TensorBase):
            return True
    return False


def living_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, without levels that have ended."""
    return replace_tensors(values, living)


def values_at(values: tuple[Any, ...], level: Level) -> tuple[Any, ...]:
    """The arguments one level further out."""
    made: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            made.append(value_at(value, level))
        elif isinstance(value, (list, tuple)) and _has_tensor(value):
            items = [value_at(v, level) if isinstance(v, TensorBase) else v for v in value]
            made.append(tuple(items) if isinstance(value, tuple) else items)
        else:
            made.append(value)
    return tuple(made)


def lifted_values(values: tuple[Any, ...], level: Level) -> tuple[Any, ...]:
    """The arguments as tensors of a level; others become constants there."""
    made: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            made.append(_lifted(value, level))
        elif isinstance(value, (list, tuple)) and _has_tensor(value):
            items = [_lifted(v, level) if isinstance(v, TensorBase) else v for v in value]
            made.append(tuple(items) if isinstance(value, tuple) else items)
        else:
            made.append(value)
    return tuple(made)


def _lifted(tensor: TensorBase, level: Level) -> TensorBase:
    return tensor if is_at(tensor, level) else make_level_tensor(tensor, level)


def like(out: Any, items: list[Any]) -> Any:
    """Several results as what `out` is: a list, a tuple, or results with names."""
    if isinstance(out, list):
        return items
    if hasattr(out, "_fields"):
        return type(out)(*items)
    return tuple(items)
