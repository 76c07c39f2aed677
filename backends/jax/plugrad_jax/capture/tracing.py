"""One trace of a step: what it computes, as a program of JAX, and what it changes, as a list.

The step runs once on tracers. Then everything is restored, also after an error: the first run of
the program changes tensors in the same way as every later one.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core

import plugrad
from plugrad.autograd.graph import RemovableHandle
from plugrad.plugins.compiling.roots import PLAIN, Roots
from plugrad.plugins.scopes import Scope, Undone
from plugrad.plugins.tracing import (
    Before,
    cell_of,
    generators,
    listening,
    resolved,
    sharers,
    tensor_of,
)
from plugrad_jax.capture.changes import (
    LEAF,
    TENSOR,
    Argument,
    Call,
    Changes,
    Inside,
    New,
    Place,
    RawArray,
    Traced,
    flatten,
    with_sharers,
)
from plugrad_jax.capture.errors import CaptureError, needs_a_value, no_value
from plugrad_jax.capture.numbers import Count
from plugrad_jax.capture.recorder import Recorder
from plugrad_jax.devices import device_of
from plugrad_jax.sharding.mixing import SPREAD
from plugrad_jax.sharding.placing import is_wide

Array = Any


class Tracing:
    """A trace while it goes on."""

    def __init__(self, function: Callable[..., Any], call: Call, roots: Roots, name: str) -> None:
        self.function = function
        self.call = call
        self.roots = roots
        self.name = name
        self.recorder = Recorder(self._name_of, _place_of(call))
        foreign = {id(tensor) for tensor in roots.tensors if tensor.device.type != "jax"}
        self.tensors = [
            tensor
            for tensor in with_sharers([*call.tensors, *roots.tensors])
            if id(tensor) not in foreign
        ]
        self.generators = generators("jax")
        self.numbers = roots.numbers()
        self.changes = Changes()
        self._inputs: dict[int, Array] = {}
        self._keys: list[Array] = []
        self._held: list[Any] = []
        self._stand_ins: list[Any] = []

    def run(self) -> Traced:
        """Trace the step.

        Raises:
            CaptureError: it does what a program cannot do.
        """
        for tensor in self.tensors:
            self.recorder.meet(tensor)
        self._held = [holder.copy() for _, holder in self.roots.holders]
        keys = [generator.key for generator in self.generators]
        sources: list[Any] = [*self.tensors, *self.numbers, *self.generators]
        arrays = [tensor.array for tensor in self.tensors]
        sources += [Place(number) for number in range(len(self.call.arrays))]
        values = [number.read() for number in self.numbers]
        with Undone(functools.partial(self._undo, keys)):
            try:
                closed = jax.make_jaxpr(self._body)(arrays, values, keys, self.call.arrays)
            except Exception as error:
                if needs_a_value(error):
                    raise no_value(error, self.name) from error
                raise
        self._check_left()
        return self._finished(closed, sources)

    def _finished(self, closed: Any, sources: list[Any]) -> Traced:
        """The program with its inputs: tensors that were met on the way are constants so far."""
        jaxpr = closed.jaxpr
        holders: dict[int, Any] = {
            id(before.array): before.tensor
            for before in self.recorder.before.values()
            if id(before.tensor) not in self._known()
        }
        holders |= {id(key): made for made, key in self.recorder.generators.values()}
        variables = list(jaxpr.invars)
        constvars, consts = [], []
        for variable, value in zip(jaxpr.constvars, closed.consts, strict=True):
            source = holders.get(id(value))
            if source is None:
                constvars.append(variable)
                consts.append(value)
            else:
                variables.append(variable)
                sources.append(source)
        used = _used(jaxpr)
        chosen = [number for number, variable in enumerate(variables) if variable in used]
        program = jax.extend.core.ClosedJaxpr(
            jaxpr.replace(
                constvars=constvars,
                invars=[variables[number] for number in chosen],
                debug_info=jaxpr.debug_info.with_unknown_names(),
            ),
            consts,
        )
        made = Traced(program, [sources[number] for number in chosen], self.changes, self.roots)
        made.mesh, made.place = self.recorder.mesh, self.recorder.place
        made.watched = [before.tensor for before in self.recorder.before.values()]
        return made

    def _known(self) -> set[int]:
        return {id(tensor) for tensor in self.tensors}

    # Inside the trace

    def _body(
        self, arrays: list[Array], values: list[Array], keys: list[Array], raw: list[Array]
    ) -> list[Array]:
        for tensor, array in zip(self.tensors, arrays, strict=True):
            self._inputs[id(tensor)] = array
            if SPREAD.used and is_wide(tensor.array):
                self.recorder.shardings[id(array)] = tensor.array.sharding
            self.recorder.before[id(tensor)].stand_in(array)
        for generator, key in zip(self.generators, keys, strict=True):
            generator.key = key
        self._keys = keys
        self._put_numbers(values)
        args, kwargs = self.call.arguments(raw)
        with (
            listening(self.recorder),
            plugrad.autograd.set_multithreading_enabled(False),
            _OptimizersSeen(self._check_optimizer),
        ):
            returned = self.function(*args, **kwargs)
        self._note_changes(returned)
        return self.changes.results

    def _check_optimizer(self, optimizer: Any, *_: Any) -> None:
        if not any(optimizer is known for known in self.roots.optimizers):
            raise CaptureError(
                f"{self.name}: the function steps an optimizer, {type(optimizer).__name__}, that "
                "was not found: pass it, jit(..., state=optimizer)"
            )

    def _put_numbers(self, values: list[Array]) -> None:
        devices = _devices_of_numbers(self.roots)
        for number, value in zip(self.numbers, values, strict=True):
            tensor: Any = tensor_of(value, plugrad.float64, devices[id(number.places[0][0])])
            counted = number in self.roots.counts.values()
            self._stand_ins.append(tensor)
            for holder, key in number.places:
                holder[key] = Count(tensor) if counted else tensor

    def _note_changes(self, returned: Any) -> None:
        changes = self.changes
        self.recorder.check_stored()
        # The first results are those that `Program` puts into tensors all at once.
        self._note_writes()
        for before in list(self.recorder.before.values()):
            self._note_grad(before.tensor, before)
        self._note_numbers()
        for (name, holder), before in zip(self.roots.holders, self._held, strict=True):
            self._note_holder(name, holder, before)
        for generator, key in zip(self.generators, self._keys, strict=True):
            if generator.key is not key:
                changes.generators.append((generator, changes.result(generator.key)))
        for generator, _ in self.recorder.generators.values():
            changes.generators.append((generator, changes.result(generator.key)))
        changes.returned = self._described(returned, "returned")

    def _note_numbers(self) -> None:
        """Counts that have grown go back to what they are outside; nothing else may change."""
        for number, stand_in in zip(self.numbers, self._stand_ins, strict=True):
            found = [holder[key] for holder, key in number.places]
            added = {value.added for value in found if isinstance(value, Count)}
            if len(added) == 1 and all(isinstance(value, Count) for value in found):
                number.grows = added.pop()
                if number.grows:
                    array = found[0].as_tensor().array
                    self.changes.counts.append((number, self.changes.result(array)))
            elif stand_in._version or any(value is not stand_in for value in found):
                _, key = number.places[0]
                raise CaptureError(
                    f"the step sets {key!r} of an optimizer to another number, which a captured "
                    "step cannot do: set it outside"
                )

    def _note_writes(self) -> None:
        changes = self.changes
        cells: set[int] = set()
        for before in list(self.recorder.before.values()):
            tensor = before.tensor
            name = self._name_of(tensor)
            if before.has_graph():
                raise CaptureError(
                    f"{name} existed before the step, which writes to it while autograd records; "
                    "this graph would end with the step: write to it under no_grad, "
                    "or write a detached tensor"
                )
            initial = self._inputs.get(id(tensor), before.array)
            if tensor.array is not initial:
                if tensor.shape != before.array.shape or tensor.dtype is not before.dtype:
                    raise CaptureError(f"the step changes the shape or dtype of {name}")
                cell = cell_of(tensor)
                # All that share elements follow the one that is written.
                if cell is None or id(cell) not in cells:
                    cells.add(id(cell))
                    changes.result(tensor.array)
                    changes.writes.append((tensor, before.writes()))

    def _note_grad(self, tensor: Any, before: Before) -> None:
        changes = self.changes
        meta = tensor._autograd_meta
        if meta is None:
            return
        if bool(meta.requires_grad) is not before.leaf_flag:
            changes.flags.append((tensor, bool(meta.requires_grad)))
        grad = meta.grad
        if grad is before.grad:
            return
        if grad is None:
            changes.dropped_grads.append(tensor)
        elif id(grad) in self.recorder.before and not isinstance(
            self.recorder.before[id(grad)].array, jax.core.Tracer
        ):
            changes.kept_grads.append((tensor, grad))
        elif grad.dtype is tensor.dtype and not grad.requires_grad:
            changes.result(resolved(grad).array)
            changes.new_grads.append(tensor)
        else:
            raise CaptureError(
                f"the gradient of {self._name_of(tensor)} is recorded (create_graph=True), and "
                "its graph would end with the step: use plugrad.autograd.grad for gradients of "
                "gradients"
            )

    def _note_holder(self, name: str, holder: Any, before: Any) -> None:
        if isinstance(holder, list):
            if len(holder) != len(before):
                raise CaptureError(
                    f"{name}, a list, has another length after the step; a captured step runs "
                    "without Python: return the new elements, and add them outside"
                )
            items: Any = enumerate(holder)
            old: Any = dict(enumerate(before))
        else:
            items, old = list(holder.items()), before
            for key in old.keys() - holder.keys():
                self.changes.places.append((holder, key, None))
        for key, value in items:
            if key in old and (value is old[key] or _equal(value, old[key])):
                continue
            if isinstance(value, Count) or (key in old and self._is_number(holder, key)):
                continue
            if key in old and isinstance(value, PLAIN) and isinstance(old[key], PLAIN):
                raise CaptureError(
                    f"the step changes {name}[{key!r}] from {old[key]!r} to {value!r}; a captured "
                    "step runs without Python, so it would not happen again: change it outside, "
                    "or make a tensor of it"
                )
            what = f"{name}[{key!r}]" if isinstance(key, (str, int)) else name
            self.changes.places.append((holder, key, self._described(value, what)))

    def _is_number(self, holder: Any, key: Any) -> bool:
        return any(
            holder is place and key == name
            for number in self.numbers
            for place, name in number.places
        )

    def _described(self, value: Any, name: str) -> Any:
        leaves, structure = flatten(value)
        found = [self._described_leaf(leaf, name) for leaf in leaves]
        return found[0] if structure == LEAF else Inside(found, structure)

    def _described_leaf(self, value: Any, name: str) -> Any:
        changes = self.changes
        if isinstance(value, Count):
            value = value.as_tensor()
        if isinstance(value, TENSOR):
            for number, tensor in enumerate(self.call.tensors):
                if tensor is value:
                    return Argument(number)
            if id(value) in self.recorder.before and not isinstance(
                self.recorder.before[id(value)].array, jax.core.Tracer
            ):
                return changes.keep(value)
            if value.device.type != "jax":
                return changes.keep(value)
            self._check_no_view(value, name)
            return New(value, changes.result(resolved(value).array))
        if isinstance(value, jax.Array):
            return RawArray(changes.result(value))
        return changes.keep(value)

    def _check_no_view(self, tensor: Any, name: str) -> None:
        for other in sharers(tensor):
            if id(other) in self.recorder.before:
                raise CaptureError(
                    f"{name} shares its elements with {self._name_of(other)}, which existed "
                    "before the step: use .clone()"
                )

    def _name_of(self, tensor: Any) -> str:
        for number, argument in enumerate(self.call.tensors):
            if argument is tensor:
                return f"tensor {number} of the arguments"
        name = self.roots.names.get(id(tensor))
        return name or f"a tensor of shape {tuple(tensor.shape)}"

    # After it

    def _undo(self, keys: list[Array]) -> None:
        for (_, holder), before in zip(self.roots.holders, self._held, strict=True):
            if isinstance(holder, list):
                holder[:] = before
            elif holder.keys() != before.keys() or any(
                holder[key] is not value for key, value in before.items()
            ):
                holder.clear()
                holder.update(before)
        for before in self.recorder.before.values():
            before.restore()
        for generator, key in zip(self.generators, keys, strict=True):
            generator.key = key
        for generator, key in self.recorder.generators.values():
            generator.key = key
        self._inputs = {}
        self._keys = []
        self.changes.results = []

    def _check_left(self) -> None:
        try:
            self.recorder.check_left(set())
        except CaptureError:
            # Cycles of tensors and nodes are not a leak.
            gc.collect()
            self.recorder.check_left(set())


class _OptimizersSeen(Scope):
    """In the block `check(optimizer, ...)` is called before each step of an optimizer of
    plugrad-nn."""

    def __init__(self, check: Callable[..., None]) -> None:
        self.check = check
        self.handle: Any = None

    def read(self, state: Any) -> None:
        return None

    def change(self, state: Any) -> None:
        optimizers = sys.modules.get("plugrad_nn.optim.optimizer")
        if optimizers is not None:
            # The handle first, so that the hook can be removed at any time.
            self.handle = RemovableHandle(optimizers._global_optimizer_pre_hooks)
            optimizers._global_optimizer_pre_hooks[self.handle.id] = self.check

    def restore(self, state: Any, before: None) -> None:
        if self.handle is not None:
            self.handle.remove()


def _place_of(call: Call) -> Any:
    """The device of the first argument that has one."""
    for tensor in call.tensors:
        return tensor.device
    for array in call.arrays:
        if not isinstance(array, jax.core.Tracer):
            return device_of(array)
    return None


def _devices_of_numbers(roots: Roots) -> dict[int, Any]:
    """The locations of parameters with an option or count in a dict of an optimizer, by the dict's
    id."""
    found: dict[int, Any] = {}
    for optimizer in roots.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                found[id(group)] = parameter.device
                found[id(optimizer.state.get(parameter))] = parameter.device
    return found


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, PLAIN) and bool(a == b)


def _used(jaxpr: Any) -> set[Any]:
    """The variables that any equation or result uses."""
    found: set[Any] = set()
    literal = jax.extend.core.Literal
    for equation in jaxpr.eqns:
        found.update([atom for atom in equation.invars if not isinstance(atom, literal)])
    found.update([atom for atom in jaxpr.outvars if not isinstance(atom, literal)])
    return found
