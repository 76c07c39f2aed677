"""Functions that pipes apply to samples: whether they can be pickled, and to which columns of a
sample they apply."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, Final

_AT_END: Final = -1


def check_function(function: Callable[..., Any]) -> None:
    """Warn of a function that cannot be pickled, and so cannot be sent to a process."""
    if not callable(function):
        raise TypeError(f"A callable function is expected, but {type(function)} is provided.")
    inner = function.func if isinstance(function, functools.partial) else function
    if not inspect.isfunction(inner):
        return
    kind = "Local" if "<locals>" in inner.__qualname__ else "Lambda"
    if kind == "Local" or inner.__name__ == "<lambda>":
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or "
            "functools.partial instead.",
            stacklevel=4,
        )


def check_columns(function: Callable[..., Any], input_col: Any) -> None:
    """Raises ValueError if a function does not take as many arguments as there are columns."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function in C without a signature
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__name__", str(inner))
    needed_by_name = [p for p in by_name if p.default is p.empty]
    if needed_by_name:
        raise ValueError(
            f"The function {name} takes {len(needed_by_name)} non-default keyword-only parameters, "
            "which is not allowed."
        )
    total = len(by_place) + len(by_name)
    if total < count and not is_open:
        raise ValueError(f"The function {name} takes {total} parameters, but {count} are required.")
    needed = sum(p.default is p.empty for p in by_place)
    if needed > count or (len(by_place) < count and not is_open):
        raise ValueError(
            f"The function {name} takes {needed} positional parameters, but {count} are required."
        )


def single_output(input_col: Any, output_col: Any) -> Any:
    """The column for results; None for the input columns.

    Raises ValueError: there is no input column to it, or there are several output columns.
    """
    if input_col is None and output_col is not None:
        raise ValueError("`output_col` must be None when `input_col` is None.")
    if isinstance(output_col, (list, tuple)):
        if len(output_col) > 1:
            raise ValueError("`output_col` must be a single-element list or tuple")
        return output_col[0]
    return output_col


def called(function: Callable[..., Any], sample: Any, input_col: Any) -> Any:
    """The result for one column, for several, or, with None, for the whole sample."""
    if input_col is None:
        return function(sample)
    if isinstance(input_col, (list, tuple)):
        return function(*(sample[column] for column in input_col))
    return function(sample[input_col])


def with_result(sample: Any, result: Any, input_col: Any, output_col: Any) -> Any:
    """A copy of a sample that has the result in a column. By default that is the first input
    column, and the others are left out."""
    is_tuple = isinstance(sample, tuple)
    changed: Any = list(sample) if is_tuple else copy.deepcopy(sample)
    if output_col is None and isinstance(input_col, (list, tuple)):
        changed[input_col[0]] = result
        for column in sorted(input_col[1:], reverse=True):
            del changed[column]
    elif output_col is None:
        changed[input_col] = result
    elif output_col == _AT_END:
        changed.append(result)
    else:
        changed[output_col] = result
    return tuple(changed) if is_tuple else changed
