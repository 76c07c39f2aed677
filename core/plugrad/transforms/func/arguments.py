"""Which arguments a derivative is taken of: `argnums`."""

from __future__ import annotations

from typing import Any

from plugrad.dtype import COMPLEX
from plugrad.tensor.base import TensorBase


def check_argnums(argnums: Any, count: int) -> None:
    """Whether `argnums` names some of `count` positional arguments.

    Raises:
        RuntimeError: it is neither an int nor a tuple of different ints, or names none of them.
    """
    if isinstance(argnums, int):
        if not -count <= argnums < count:
            raise RuntimeError(f"Got argnum={argnums}, but only {count} positional inputs")
        return
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    for number in argnums:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        check_argnums(number, count)
    if len({number % count for number in argnums}) != len(argnums):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> Any:
    """The arguments that `argnums` names: one, or a tuple."""
    if isinstance(argnums, int):
        return args[argnums]
    return tuple(args[number] for number in argnums)


def replaced(args: tuple[Any, ...], values: Any, argnums: int | tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments, with others in the place of those that `argnums` names."""
    made = list(args)
    if isinstance(argnums, int):
        made[argnums] = values
    else:
        for number, value in zip(argnums, values, strict=True):
            made[number] = value
    return tuple(made)


def check_real(api: str, what: str, leaves: list[Any]) -> None:
    """RuntimeError if one of a function's inputs or outputs is complex: a Jacobian of real numbers
    would not say how it depends on them."""
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, TensorBase) and leaf.dtype.category == COMPLEX:
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {place}"
            )
