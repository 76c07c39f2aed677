"""Functions that layers look up in `functional` at each call, as programs replace them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad_nn.nn import functional


class FunctionOf:
    """An attribute of a class: the function that `functional` has under a name now."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(functional, self._name)
        return function
