"""A captured step with its lowering: its inputs, and what a run changes besides its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any, Final

from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.keys import CONJUGATE_BIT, MATH_BITS
from plugrad.plugins.compiling.roots import Roots
from plugrad.plugins.tracing import (
    HAS_GRAD,
    IS_CONJ,
    IS_NEG,
    REQUIRES_GRAD,
    Before,
    arrays_of,
    drop_gradients,
    put_arrays,
    put_gradients,
    situation,
    tensor_of,
)
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.transforms.capture.aliases import OUTSIDE, Aliases
from plugrad.transforms.capture.errors import CaptureError
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Ref
from plugrad.transforms.capture.trees import LEAF, unflatten
from plugrad.transforms.lowering.numbers import Followed, Formulas, Stand
from plugrad.transforms.lowering.observing import Observer
from plugrad.transforms.lowering.step import Step

# Where an output or a gradient comes from.
RESULT: Final = 0
ARGUMENT: Final = 1
OBJECT: Final = 2
GRADIENT: Final = 3


class Program:
    """One captured step, lowered.

    Args:
        graph: the operators, after passes.
        arguments: the tensors among the call's arguments.
        observer: the recorder of the run.
        roots: what the step can reach.
        stands, formulas: numbers that were followed.
        lower: the lowering.

    Raises:
        CaptureError: a program cannot do what the step does.
        NotImplementedError: the lowering cannot.
    """

    def __init__(
        self,
        graph: Graph,
        arguments: list[TensorBase],
        observer: Observer,
        roots: Roots,
        stands: list[Stand],
        formulas: Formulas,
        lower: Callable[[ActiveBackend], Callable[[Step], Callable[..., list[Any]]]],
    ) -> None:
        self.graph: Graph = graph
        self.roots = roots
        self.runs = 0
        self._stands = stands
        self._places = {id(tensor): number for number, tensor in enumerate(arguments)}
        befores = list(observer.before.values())
        self._take_inputs(arguments)
        self._watch(befores, arguments)
        self._take_results()
        self._take_gradients()
        self._count_writes(befores)
        self._take_numbers(formulas)
        self.active = self._backend()
        self._check_aliases()
        names = [name for _, name in self._results]
        examples = {name: self._example(name) for name in self._arrays}
        step = Step(graph, self.active, examples, self._followed, tuple(names))
        self.lowered = lower(self.active)(step)
        # What belonged to the call that was captured does not live on.
        self._examples.clear()
        held = {n: replace(c, value=None) if c.grad_of else c for n, c in graph.held.items()}
        self.graph = replace(graph, held=held, function=None)

    # What goes in

    def _take_inputs(self, arguments: list[TensorBase]) -> None:
        graph = self.graph
        read = {name for node in graph.nodes for name in node.reads()}
        self._of_argument: dict[str, int] = {}
        self._of_tensor: dict[str, TensorBase] = {}
        # The tensors whose gradients the step reads.
        self._of_owner: dict[str, str] = {}
        for number, each in enumerate(graph.inputs):
            self._of_argument[each.name] = number
        for constant in graph.held.values():
            if isinstance(constant.value, TensorBase) and not constant.fresh:
                if constant.grad_of:
                    self._of_owner[constant.name] = constant.grad_of
                else:
                    self._of_tensor[constant.name] = constant.value
        given = [name for name in self._of_argument if name in read]
        own = [name for name in self._of_tensor if name in read]
        owners = [name for name in self._of_owner if name in read]
        self._arrays = [*given, *own, *owners]
        self._given = [self._of_argument[name] for name in given]
        self._own = [self._of_tensor[name] for name in own]
        self._own_arrays = arrays_of(self._own)
        self._own_about = [_about(tensor) for tensor in self._own]
        self._owners = [self._of_owner[name] for name in owners]
        self._owned_about = [_about(graph.held[name].value) for name in owners]
        self._strides = [strides(tensor) for tensor in arguments]
        self._keysets = [tensor._keyset for tensor in arguments]

    def _example(self, name: str) -> TensorBase:
        if name in self._of_tensor:
            return self._of_tensor[name]
        if name in self._of_owner:
            value = self.graph.held[name].value
            assert isinstance(value, TensorBase)
            return value
        example: TensorBase = self._examples[self._of_argument[name]]
        return example

    def _watch(self, befores: list[Before], arguments: list[TensorBase]) -> None:
        self._examples: list[TensorBase] = list(arguments)
        watched = [before for before in befores if id(before.tensor) not in self._places]
        self._watched = [before.tensor for before in watched]
        self._situation = [_word(before) for before in watched]
        self._watched_ids = frozenset(map(id, self._watched))

    def _backend(self) -> ActiveBackend:
        metas = [meta for node in self.graph.nodes for meta in node.metas if meta is not None]
        devices = {meta.device for meta in metas}
        devices |= {self._example(name).device for name in self._arrays}
        if len(devices) > 1:
            shown = ", ".join(sorted(map(str, devices)))
            raise CaptureError(f"the step computes on several devices: {shown}")
        if not devices:
            raise CaptureError("the step calls no operator")
        (device,) = devices
        active = find_backend(device.type)
        if not active.backend.mutable and any(node.writes for node in self.graph.nodes):
            raise CaptureError(
                f"the step writes to tensors, and arrays of the backend {active.name!r} cannot be "
                "written to"
            )
        if any(self._example(name)._keyset & MATH_BITS for name in self._arrays):
            raise CaptureError("a tensor is a conjugate or negative view")
        return active

    def _take_numbers(self, formulas: Formulas) -> None:
        found = {c.name: c.value for c in self.graph.held.values() if type(c.value) is Followed}
        self._followed = tuple(found)
        read = [stand for stand in self._stands if stand.follows]
        self._read_stands = read
        self._fixed = [stand for stand in self._stands if not stand.follows]
        self._compute: Callable[..., list[float]] | None = None
        if found:
            lines = [
                f"def numbers({', '.join(stand.name for stand in read)}):",
                *[f"    {line}" for line in formulas.lines],
                f"    return [{', '.join(value.name for value in found.values())}]",
            ]
            names: dict[str, Any] = {}
            exec(compile("\n".join(lines), "<numbers of a step>", "exec"), names)
            self._compute = names["numbers"]

    # What comes out

    def _take_results(self) -> None:
        self._results: list[tuple[int, str]] = []
        self._numbers: dict[str, int] = {}
        self._outputs = [self._source(output) for output in self.graph.outputs]
        self._single = self.graph.output_tree == LEAF
        self._made: dict[int, Any] = {}
        metas = self._metas()
        for number, name in list(self._results):
            self._made[number] = metas[name]

    def _metas(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node in self.graph.nodes:
            for name, meta in zip(node.results, node.metas, strict=True):
                if name is not None:
                    found.setdefault(name, meta)
        return found

    def _source(self, output: Any) -> tuple[int, Any]:
        if not isinstance(output, Ref):
            return OBJECT, output
        name = output.name
        if name in self._of_argument:
            return ARGUMENT, self._of_argument[name]
        if name in self._of_owner:
            return GRADIENT, self._of_owner[name]
        if name in self.graph.held:
            return OBJECT, self.graph.held[name].value
        return RESULT, self._result(name)

    def _result(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._results)
            self._results.append((self._numbers[name], name))
        return self._numbers[name]

    def _take_gradients(self) -> None:
        self._new_gradients: list[tuple[str, int]] = []
        self._dropped: list[str] = []
        self._kept: list[tuple[str, tuple[int, Any]]] = []
        given = {number for kind, number in self._outputs if kind == RESULT}
        for owner, name in self.graph.gradients.items():
            if name is None:
                self._dropped.append(owner)
                continue
            kind, what = self._source(Ref(name))
            meta = self._metas().get(name)
            own = meta is not None and meta.dtype is self._owner_dtype(owner)
            if kind == RESULT and what not in given and own:
                self._new_gradients.append((owner, what))
                given.add(what)
            elif kind == RESULT:
                raise CaptureError(
                    f"the gradient of {owner} is a result of the step, or another tensor's, too"
                )
            else:
                self._kept.append((owner, (kind, what)))

    def _owner_dtype(self, owner: str) -> Any:
        if owner in self._of_argument:
            return self._examples[self._of_argument[owner]].dtype
        return self._of_tensor[owner].dtype

    def _count_writes(self, befores: list[Before]) -> None:
        self._written: list[TensorBase] = []
        self._counts: list[int] = []
        storages: set[int] = set()
        for before in befores:
            count = before.writes()
            storage = before.tensor._shared_storage
            if count and id(storage) not in storages:
                storages.add(id(storage))
                self._written.append(before.tensor)
                self._counts.append(count)
        ids = [id(tensor) for tensor in self._written]
        self._writes_arguments = any(each in self._places for each in ids)

    def _check_aliases(self) -> None:
        """Raise if results share memory with each other or with earlier tensors."""
        aliases = Aliases(self.graph)
        taken: set[str] = {OUTSIDE}
        for _, name in self._results:
            places = aliases.places(name)
            if not taken.isdisjoint(places):
                raise CaptureError(
                    f"the result {name} shares memory with another one, or with a tensor that was "
                    "there before: clone() it"
                )
            taken |= places

    # Running

    def fits(self, tensors: Any) -> bool:
        """Whether everything that the capture depended on is unchanged, apart from the arguments'
        types."""
        if not self.roots.same_objects() or situation(self._watched) != self._situation:
            return False
        if not self.is_for(tensors):
            return False
        arrays = arrays_of(self._own)
        if not all(map(is_, arrays, self._own_arrays)):
            if [_about(tensor) for tensor in self._own] != self._own_about:
                return False
            self._own_arrays = arrays
        return all(stand.number.known() == stand.value for stand in self._fixed)

    def is_for(self, tensors: Any) -> bool:
        """Whether arguments have the memory layout of the captured ones, and are not state."""
        for tensor, wanted, keyset in zip(tensors, self._strides, self._keysets, strict=True):
            if tensor._keyset != keyset or strides(tensor) != wanted:
                return False
            if id(tensor) in self._watched_ids:
                return False
        return True

    def run(self, tensors: Any) -> Any:
        """Run the step for tensors that it fits.

        Raises:
            Missed: numbers or gradients are not what they were.
        """
        arrays: list[Any] = [tensors[number]._backend_array for number in self._given]
        arrays += self._own_arrays
        for owner, about in zip(self._owners, self._owned_about, strict=True):
            grad = self._named(owner, tensors).grad
            if grad is None or _about(grad) != about:
                raise Missed
            arrays.append(grad._backend_array)
        values: list[Any] = []
        for stand in self._read_stands:
            value = stand.number.known()
            if type(value) is not float:
                raise Missed
            values.append(value)
        if self._compute is not None:
            arrays += self._compute(*values)
        self.runs += 1
        try:
            found = self.lowered(*arrays)
        finally:
            self._note_writes(tensors)
        for stand, value in zip(self._read_stands, values, strict=True):
            if stand.number.grows:
                stand.number.store(value + stand.number.grows)
        return self._finish(tensors, found)

    def _note_writes(self, tensors: Any) -> None:
        written = self._written
        if written:
            if self._writes_arguments:
                places = self._places
                written = [
                    tensors[places[id(each)]] if id(each) in places else each for each in written
                ]
            put_arrays(written, arrays_of(written), self._counts)

    def _finish(self, tensors: Any, found: list[Any]) -> Any:
        kept = [(owner, self._value(source, tensors, found)) for owner, source in self._kept]
        made: dict[int, Any] = {}
        outputs = []
        for source in self._outputs:
            kind, what = source
            if kind == RESULT and what in made:
                outputs.append(made[what])
                continue
            outputs.append(self._value(source, tensors, found))
            if kind == RESULT:
                made[what] = outputs[-1]
        if self._new_gradients:
            owners = [self._named(owner, tensors) for owner, _ in self._new_gradients]
            put_gradients(owners, [found[number] for _, number in self._new_gradients])
        if self._dropped:
            drop_gradients([self._named(owner, tensors) for owner in self._dropped])
        for owner, grad in kept:
            self._named(owner, tensors).grad = grad
        return outputs[0] if self._single else unflatten(self.graph.output_tree, outputs)

    def _value(self, source: tuple[int, Any], tensors: Any, found: list[Any]) -> Any:
        kind, what = source
        if kind == RESULT:
            meta = self._made[what]
            return tensor_of(found[what], meta.dtype, meta.device)
        if kind == ARGUMENT:
            return tensors[what]
        return self._named(what, tensors).grad if kind == GRADIENT else what

    def kept_ids(self, tensors: Any) -> set[int]:
        """Ids of the gradients that a run sets."""
        owners = [self._named(owner, tensors) for owner in self.graph.gradients]
        return {id(owner.grad) for owner in owners}

    def _named(self, name: str, tensors: Any) -> Any:
        number = self._of_argument.get(name)
        return self._of_tensor[name] if number is None else tensors[number]


class Missed(Exception):  # no error: it means that the step must be captured again
    """Something that a run reads has changed since the step was captured."""


def _about(tensor: TensorBase) -> Any:
    return sizes_of(tensor), tensor.dtype, tensor.device, strides(tensor), tensor._keyset


def _word(before: Before) -> int:
    """The result of `situation` for a tensor before the run."""
    word = HAS_GRAD if before.grad is not None else 0
    word += REQUIRES_GRAD if before.requires_grad else 0
    if before.keyset & MATH_BITS:
        word += IS_CONJ if before.keyset & CONJUGATE_BIT else 0
        word += IS_NEG if before.keyset & MATH_BITS & ~CONJUGATE_BIT else 0
    return word


def check_history(graph: Graph, observer: Observer) -> None:
    """Raise if tensors that were there before, or results, are in a graph that is needed."""
    for before in observer.before.values():
        if before.has_graph():
            raise CaptureError("a tensor from outside is written to with a gradient to follow")
        if needs_grad(before.tensor) != before.requires_grad:
            raise CaptureError("requires_grad of a tensor from outside has changed")
    if graph.makes_leaves:
        raise CaptureError("the step makes new leaves, by requires_grad_()")
    for name in (name for name in graph.gradients.values() if name is not None):
        if needs_grad(observer.tensor_named(name)):
            raise CaptureError("a gradient is recorded (create_graph=True)")
    for output in graph.outputs:
        if isinstance(output, Ref) and isinstance(graph.constants.get(output.name), TensorBase):
            continue
        if isinstance(output, Ref) and output.name not in graph.constants:
            tensor = observer.tensor_named(output.name)
            if needs_grad(tensor) and not observer.passes and id(tensor) in observer.own:
                raise CaptureError(
                    "a result requires grad, and no backward pass runs within the step"
                )
