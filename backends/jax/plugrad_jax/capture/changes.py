"""The result of a trace: the program, and a record of what a step changes, for later runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import optree

import plugrad
from plugrad.plugins.compiling.roots import Roots
from plugrad.plugins.tracing import cell_of, sharers, tensor_of
from plugrad_jax.capture.numbers import DeviceNumber

Array = Any

# With fields that the public type does not declare.
TENSOR: Final[Any] = plugrad.Tensor


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """What dicts, lists and tuples hold, and what they are."""
    leaves, structure = optree.tree_flatten(tree, none_is_leaf=True)
    return list(leaves), structure


LEAF: Final = flatten(0)[1]


class Call:
    """The arguments of one call, taken apart.

    Attributes:
        leaves: what the containers of the arguments hold.
        structure: the containers.
        tensors: the leaves that are tensors.
        arrays: the leaves that are JAX's own arrays.
    """

    def __init__(self, leaves: list[Any], structure: Any, *, only_tensors: bool = False) -> None:
        self.leaves = leaves
        self.structure = structure
        if only_tensors:
            self.tensors = leaves
            self.arrays: list[Any] = []
            return
        self.tensors = [leaf for leaf in leaves if isinstance(leaf, TENSOR)]
        self.arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

    def arguments(self, arrays: list[Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with other arrays in place of JAX's own."""
        rest = iter(arrays)
        leaves = [next(rest) if isinstance(leaf, jax.Array) else leaf for leaf in self.leaves]
        restored: Any = optree.tree_unflatten(self.structure, leaves)
        args, kwargs = restored
        return args, kwargs


# Those that follow have `make`: the thing itself, from the program's results and the arguments.


class New:
    """In a list of changes: a tensor that the step made, and which result has its elements."""

    def __init__(self, tensor: Any, result: int) -> None:
        self.result = result
        self.dtype = tensor.dtype
        self.device = tensor.device

    def make(self, results: list[Array], given: list[Any]) -> Any:
        return tensor_of(results[self.result], self.dtype, self.device)


class RawArray:
    """In a list of changes: an array of JAX's own."""

    def __init__(self, result: int) -> None:
        self.result = result

    def make(self, results: list[Array], given: list[Any]) -> Any:
        return results[self.result]


class Kept:
    """In a list of changes: an object that was there before, or that is the same in every run."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def make(self, results: list[Array], given: list[Any]) -> Any:
        return self.value


class Argument:
    """In a list of changes: a tensor that the step was given."""

    def __init__(self, number: int) -> None:
        self.number = number

    def make(self, results: list[Array], given: list[Any]) -> Any:
        return given[self.number]


class Inside:
    """In a list of changes: a dict, list or tuple that contains changes."""

    def __init__(self, leaves: list[Any], structure: Any) -> None:
        self.leaves = leaves
        self.structure = structure

    def make(self, results: list[Array], given: list[Any]) -> Any:
        return optree.tree_unflatten(
            self.structure, [leaf.make(results, given) for leaf in self.leaves]
        )


class Changes:
    """What a step changes besides its results.

    `results` are the program's results: first one for each of `writes`, then one for each of
    `new_grads`. A field "result" is a number in it. Tensors are those that were there before.
    """

    def __init__(self) -> None:
        self.results: list[Array] = []
        # (tensor, how often it was written to)
        self.writes: list[tuple[Any, int]] = []
        self.new_grads: list[Any] = []
        self.dropped_grads: list[Any] = []
        self.kept_grads: list[tuple[Any, Any]] = []
        self.flags: list[tuple[Any, bool]] = []
        # (dict or list, key, the value afterwards, or None for none)
        self.places: list[tuple[Any, Any, Any]] = []
        self.generators: list[tuple[Any, int]] = []
        # Counts that grow, and what they are then.
        self.counts: list[tuple[DeviceNumber, int]] = []
        self.kept: list[Kept] = []
        self.returned: Any = None

    def move(self, now: Callable[[Any], Any]) -> None:
        """Use other objects in place of those that were traced with."""
        self.dropped_grads = list(map(now, self.dropped_grads))
        self.kept_grads = [(now(tensor), now(grad)) for tensor, grad in self.kept_grads]
        self.flags = [(now(tensor), flag) for tensor, flag in self.flags]
        self.places = [(now(holder), key, value) for holder, key, value in self.places]
        self.counts = [(now(number), result) for number, result in self.counts]
        for kept in self.kept:
            kept.value = now(kept.value)

    def keep(self, value: Any) -> Kept:
        """What is the same object after every run."""
        self.kept.append(Kept(value))
        return self.kept[-1]

    def result(self, array: Array) -> int:
        self.results.append(array)
        return len(self.results) - 1


class Traced:
    """The result of a trace.

    Attributes:
        jaxpr: the program; its inputs are in the order of `sources`, its results as numbered.
        sources: where each input comes from: a tensor (its array), a `DeviceNumber`, a generator
            (its key), or the place of an array among the arguments.
        changes: the other effects.
        roots: the objects that could be reached.
        watched: tensors with properties that tracing depended on.
        mesh: a mesh of devices that the step names, or None.
        place: the device that the step computes on, if it is known.
    """

    def __init__(self, jaxpr: Any, sources: list[Any], changes: Changes, roots: Roots) -> None:
        self.jaxpr = jaxpr
        self.sources = sources
        self.changes = changes
        self.roots = roots
        self.watched: list[Any] = []
        self.mesh: Any = None
        self.place: Any = None


class Place:
    """In a list of sources: an array of JAX's own among the arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


def with_sharers(tensors: list[Any]) -> list[Any]:
    """Tensors, each once, and after them those that share elements with one of them."""
    found = {id(tensor): tensor for tensor in tensors}
    for tensor in list(found.values()):
        if cell_of(tensor) is not None:
            for other in sharers(tensor):
                found.setdefault(id(other), other)
    return list(found.values())
