"""The parts of a graph: references, inputs, constants, and nodes, each a call of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.ops.namespace import OpOverload
from plugrad.tensor.base import TensorBase, sizes_of


@dataclass(frozen=True)
class Ref:
    """A value of the graph, by its name."""

    name: str

    def __repr__(self) -> str:
        return self.name


class Meta(NamedTuple):
    """What a tensor was when the graph was captured."""

    shape: tuple[int, ...]
    dtype: DType
    device: Device

    def __str__(self) -> str:
        place = "" if self.device.type == "cpu" else f" on {self.device}"
        return f"{str(self.dtype).removeprefix('plugrad.')}{list(self.shape)}{place}"


def meta_of(tensor: TensorBase) -> Meta:
    return Meta(tuple(sizes_of(tensor)), tensor.dtype, tensor.device)


@dataclass(frozen=True)
class Input:
    """A tensor among the arguments.

    Attributes:
        position: which leaf of the arguments it is.
        same_as: the input that is the same tensor, "" if there is none before it.
    """

    name: str
    position: int
    meta: Meta
    requires_grad: bool
    same_as: str = ""


@dataclass(frozen=True)
class Constant:
    """A value that the function uses but that is not an argument.

    Attributes:
        value: a tensor, a generator, or another argument that cannot be written as code.
        fresh: a tensor that the function made from Python numbers, without other references.
        grad_of: for a gradient, the name of its input or constant, which each run reads again; ""
            for others.
        label: its name in a called module, such as ``"0.weight"``; "" for others.
    """

    name: str
    value: Any
    fresh: bool = False
    grad_of: str = ""
    label: str = ""


@dataclass(frozen=True)
class Node:
    """One call of an operator.

    Attributes:
        op: the overload, such as ``plugrad.ops.plugrad.mul.Tensor``.
        values: all arguments in the order of the schema, with a `Ref` for each value of the graph.
        name: its unique name in the graph.
        results: the names of its results; None for one that is not a tensor. An existing tensor,
            such as the result of an in-place operator, keeps its name.
        single: whether the operator returns a tensor, rather than a tuple or list of them.
        metas: the properties of the results.
        mode: the grad mode it runs in: "grad", "no_grad" or "inference".
        writes: the values that have their memory written to.
        shares: for each result, the arguments it may share memory with.
        random: whether it draws random numbers.
        scope: the modules that were being called, the outermost first, as pairs of name and type:
            ``(("", "Sequential"), ("0", "Linear"))``. In a backward pass, the forward call's
            modules.
        backward: whether a backward pass called it.
    """

    op: OpOverload
    values: tuple[Any, ...]
    name: str
    results: tuple[str | None, ...]
    single: bool
    metas: tuple[Meta | None, ...]
    mode: str
    writes: tuple[str, ...] = ()
    shares: tuple[tuple[str, ...], ...] = ()
    random: bool = False
    scope: tuple[tuple[str, str], ...] = ()
    backward: bool = False

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments that are given by position."""
        arguments = self.op.op.schema.arguments
        pairs = zip(self.values, arguments, strict=True)
        return tuple([value for value, argument in pairs if not argument.kwarg_only])

    @property
    def kwargs(self) -> dict[str, Any]:
        """Those that are given by name."""
        arguments = self.op.op.schema.arguments
        pairs = zip(self.values, arguments, strict=True)
        return {argument.name: value for value, argument in pairs if argument.kwarg_only}

    @property
    def meta(self) -> Any:
        """Shape, dtype and device of the result; a tuple of them if there are several."""
        return self.metas[0] if self.single else self.metas

    def reads(self) -> list[str]:
        """The names of the values that it is given."""
        return list(names_in(self.values))

    def defines(self) -> list[str]:
        """The names of the values that are new."""
        known = set(self.reads())
        return [name for name in self.results if name is not None and name not in known]

    def renamed(self, names: dict[str, str]) -> Node:
        """The node with other values in the place of some."""

        def new(name: str) -> str:
            return names.get(name, name)

        return replace(
            self,
            values=with_names(self.values, names),
            results=tuple([None if name is None else new(name) for name in self.results]),
            writes=tuple([new(name) for name in self.writes]),
            shares=tuple([tuple([new(name) for name in each]) for each in self.shares]),
        )


def names_in(value: Any) -> Iterator[str]:
    """The names of all references in arguments."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from names_in(item)


def with_names(value: Any, names: dict[str, str]) -> Any:
    """Arguments with other references in the place of some."""
    if isinstance(value, Ref):
        return Ref(names.get(value.name, value.name))
    if isinstance(value, (list, tuple)):
        return type(value)([with_names(item, names) for item in value])
    return value
