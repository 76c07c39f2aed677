"""TensorList: an update that is written for one tensor, computed on many tensors at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import plugrad
from plugrad import Tensor


class TensorList:
    """Tensors with the same update; each method applies to every tensor.

    A method with an operator `plugrad._foreach_*` is one call for the whole list, which a backend
    may run in one launch. Other methods call an operator for each tensor. Operands are lists as
    long as this one, numbers, or tensors of no dimension.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.tensors = list(tensors)

    def __getattr__(self, name: str) -> Callable[..., TensorList]:
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(plugrad, f"_foreach_{name}", None)
        if function is None:
            return functools.partial(self._one_by_one, name)
        return functools.partial(self._all_at_once, function, name.endswith("_"))

    def _all_at_once(
        self, function: Callable[..., Any], inplace: bool, *operands: Any, **options: Any
    ) -> TensorList:
        found = function(self.tensors, *map(_plain, operands), **options)
        return self if inplace else TensorList(found)

    def _one_by_one(self, name: str, *operands: Any, **options: Any) -> TensorList:
        def method(tensor: Tensor, *others: Any) -> Any:
            return getattr(tensor, name)(*others, **options)

        found: TensorList = each(method, self, *operands)
        return found

    def __neg__(self) -> TensorList:
        return self.neg()

    def __mul__(self, other: Any) -> TensorList:
        return self.mul(other)

    def __truediv__(self, other: Any) -> TensorList:
        return self.div(other)


def _plain(operand: Any) -> Any:
    return operand.tensors if isinstance(operand, TensorList) else operand


def each(function: Callable[..., Any], first: Any, *operands: Any) -> Any:
    """`function` of tensors, or of each place in lists of them."""
    if not isinstance(first, TensorList):
        return function(first, *operands)
    count = len(first.tensors)
    columns = [x.tensors if isinstance(x, TensorList) else [x] * count for x in operands]
    return TensorList(map(function, first.tensors, *columns))
