"""A captured step as lowerings get it: its inputs, its operators and its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.tensor.base import TensorBase
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Ref


@dataclass(frozen=True)
class Value:
    """A value among the arguments of a call, by its number."""

    number: int


@dataclass(frozen=True)
class Step:
    """A step to be lowered to one function: of arrays and numbers, to a list of arrays.

    The function writes to the arrays that in-place operators write to. Everything else that a step
    does, such as setting gradients, happens outside it. It is a `plugrad.plugins.CapturedStep`.

    Attributes:
        graph: the operators, with their shapes and dtypes.
        active: the backend of the step's arrays.
        examples: by name, tensors like the inputs, in their order.
        numbers: names of the inputs after them: Python's floats.
        results: names of the values that the function returns as arrays.
    """

    graph: Graph
    active: ActiveBackend
    examples: dict[str, TensorBase]
    numbers: tuple[str, ...]
    results: tuple[str, ...]
    _by_name: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        constants = [name for name, _ in self._constants()]
        made = [name for node in self.graph.nodes for name in node.defines()]
        for name in (*self.examples, *self.numbers, *constants, *made):
            self._by_name.setdefault(name, len(self._by_name))

    @property
    def inputs(self) -> Sequence[tuple[tuple[int, ...], Any]]:
        """Shape and native dtype of each array; `()` and None of a number."""
        native = self.active.backend.native_dtype
        found: list[tuple[tuple[int, ...], Any]] = [
            (tuple(each.shape), native(each.dtype)) for each in self.examples.values()
        ]
        return found + [((), None) for _ in self.numbers]

    @property
    def constants(self) -> Sequence[Any]:
        """Arrays that are the same in every call, and generators of random numbers."""
        return [v.array if isinstance(v, TensorBase) else v for _, v in self._constants()]

    @property
    def calls(self) -> Sequence[tuple[str, tuple[Any, ...], Sequence[int]]]:
        """Operators' full names, arguments in the order of the schema, and numbers of the results:
        -1 for one that is not a tensor; an in-place operator has its argument's number."""
        return [
            (
                node.op.op.qualified_name,
                tuple([self._numbered(value) for value in node.values]),
                [-1 if name is None else self._by_name[name] for name in node.results],
            )
            for node in self.graph.nodes
        ]

    @property
    def outputs(self) -> Sequence[int]:
        """Numbers of the values that the function returns."""
        return [self._by_name[name] for name in self.results]

    def _constants(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.graph.constants.items():
            if name not in self.examples and name not in self.numbers:
                yield name, value

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return Value(self._by_name[value.name])
        if isinstance(value, (list, tuple)):
            return type(value)([self._numbered(item) for item in value])
        return value
