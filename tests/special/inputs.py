"""Arguments for the plugin's own tests, made from the rows of its public cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import Arguments
from plugrad_special.cases import ROWS, Row


def rows(select: Callable[[Row], bool] = lambda row: True) -> list[Any]:
    """Rows as parameters of a test, with distinct names."""
    found: list[Any] = []
    for row in ROWS:
        if select(row):
            extra = "-".join(str(value) for value in (*row.first, *row.last))
            low = f"from {row.ranges[0][0]}"
            found.append(pytest.param(row, id=" ".join(filter(None, (row.name, extra, low)))))
    return found


def arguments(row: Row, dtype: str = "float64", shape: tuple[int, ...] = (2,)) -> list[Any]:
    """What the function may be called with; tensors that have a derivative require grad.

    Orders and parameters are real, degrees integers.
    """
    maker = Arguments(dtype, seed=len(row.name))
    values: list[Any] = [*row.first]
    values += [maker.make(spec) for spec in row.tensors(shape, parameters=real_of(dtype))]
    return [*values, *row.last]


def real_of(dtype: str) -> str:
    return {"complex128": "float64", "complex64": "float32"}.get(dtype, dtype)


def leaves(values: list[Any]) -> list[plugrad.Tensor]:
    return [v for v in values if isinstance(v, plugrad.Tensor) and v.requires_grad]


def function_of(row: Row) -> Any:
    return getattr(plugrad.special, row.name)


def of_leaves(row: Row, values: list[Any]) -> Callable[..., Any]:
    """The function of the tensors that require grad alone, for gradcheck."""
    function = function_of(row)

    def call(*given: plugrad.Tensor) -> Any:
        rest = iter(given)
        return function(
            *(
                next(rest) if isinstance(v, plugrad.Tensor) and v.requires_grad else v
                for v in values
            )
        )

    return call
