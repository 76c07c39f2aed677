"""Listens to a step while it is traced, and finds the earlier tensors that it uses."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import plugrad
from plugrad.plugins.tracing import Before, Listener, sharers
from plugrad_jax.capture.changes import TENSOR
from plugrad_jax.capture.errors import CaptureError, ValueAsked, calling_line
from plugrad_jax.generator import JaxGenerator


class Recorder(Listener):
    """The objects that a trace uses.

    Attributes:
        before: the former states of all tensors, by id, that the step used but did not make.
        generators: generators that the step used, with their former keys.
        results: weak references to the tensors that operators returned, and the operators' names.
        place: the device that the step computes on, as far as is known.
        mesh: a mesh of devices that the step names.
        shardings: the shardings of inputs that are spread over devices, by the tracer's id.
    """

    def __init__(self, name_of: Callable[[Any], str], place: plugrad.device | None) -> None:
        """`name_of(tensor)`: what to call it in a message. `place`: where the arguments are."""
        super().__init__()
        self._name_of = name_of
        self.place = place
        self._placed = ""
        self.mesh: Any = None
        self.shardings: dict[int, Any] = {}
        self.before: dict[int, Before] = {}
        self.generators: dict[int, tuple[JaxGenerator, Any]] = {}
        self.results: list[tuple[weakref.ref[Any], str]] = []
        # By id: earlier objects are still alive, so freed ones cannot have shared their ids.
        self._own: set[int] = set()
        # Copies reported by `selected`, kept so that their views are recognised.
        self._copies: dict[int, Any] = {}
        # Lines that write to them.
        self._lost: dict[int, str] = {}

    def meet(self, tensor: Any) -> None:
        """Note what a tensor was before the step."""
        if id(tensor) not in self.before:
            self.before[id(tensor)] = Before(tensor)

    def note(self, tensor: Any) -> None:
        """A tensor is about to get another array."""
        if id(tensor) not in self.before and not isinstance(tensor.array, jax.core.Tracer):
            self.before[id(tensor)] = Before(tensor)
        if id(tensor) in self._copies:
            self._lost[id(tensor)] = calling_line()

    def made(self, tensor: Any) -> None:
        """A tensor is the step's own, whatever its array."""
        self._own.add(id(tensor))

    def read(self, tensor: Any) -> None:
        """Python may read only tensors that the step made from Python's numbers."""
        array = tensor.array
        if isinstance(array, jax.core.Tracer):
            return  # JAX refuses
        if id(tensor) not in self._own or any(
            before.array is array for before in self.before.values()
        ):
            raise ValueAsked(self._name_of(tensor))

    def selected(self, tensor: Any) -> None:
        """A write to it is lost, unless it is assigned to where it comes from."""
        self._copies[id(tensor)] = tensor

    def stored(self, value: Any) -> None:
        if isinstance(value, TENSOR):
            for tensor in (value, *sharers(value)):
                self._lost.pop(id(tensor), None)

    def check_stored(self) -> None:
        """Raise if the step wrote to a copy that would be a view outside a trace."""
        self._copies.clear()
        for line in self._lost.values():
            raise CaptureError(
                "x[i] is a copy in a captured step if i is a tensor, so writes to it do not reach "
                f"x, at {line}: assign it, x[i] = ..., or use a number for i"
            )

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        for value in args:
            self._look(value)
        result = super().dispatch(kind, op, keyset, args)
        if kind == "call":
            self._note(result, op)
        return result

    def run_node(self, node: Any, grads: Any) -> Any:
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, TENSOR):
            self._look(leaf)
        return super().run_node(node, grads)

    def _look(self, value: Any) -> None:
        if isinstance(value, TENSOR):
            if value.device.type == "jax":
                if not isinstance(value.array, jax.Array):
                    return  # inside of a transform: what it wraps is met further out
                if value.device is not self.place or not self._placed:
                    self._compute_on(value.device, self._name_of(value))
                if id(value) not in self.before and not isinstance(value.array, jax.core.Tracer):
                    self.before[id(value)] = Before(value)
            elif id(value) not in self._own and value.device.type != "meta":
                raise CaptureError(
                    f"{self._name_of(value)} is on device {value.device}; a captured step "
                    "computes on JAX's devices only: move it there before, with .to('jax')"
                )
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._look(item)
        elif isinstance(value, plugrad.device):
            if value.type == "jax" and value.index is not None:
                self._compute_on(value, "what is made or moved there")
        elif (
            isinstance(value, JaxGenerator)
            and id(value) not in self.generators
            and not isinstance(value.key, jax.core.Tracer)
        ):
            self.generators[id(value)] = (value, value.key)
            # Results computed from it are known only when the program runs.
            value.key = jnp.copy(value.key)

    def _compute_on(self, device: plugrad.device, what: str) -> None:
        """Raise if this is not the device that the step computes on; `what` is on it."""
        if not self._placed:
            self.place = device
            self._placed = what
        elif device is not self.place:
            line = calling_line()
            raise CaptureError(
                f"the step computes on two devices: {self._placed} is on {self.place}, {what} on "
                f"{device}" + (f", at {line}" if line else "") + ". An XLA program runs on one: "
                "capture one step for each device, and move tensors between the steps"
            )

    def _note(self, result: object, op: Any) -> None:
        if isinstance(result, TENSOR):
            if result.device.type not in ("jax", "meta") and _draws(op):
                raise CaptureError(
                    f"{op.name}() draws random numbers on {result.device}, which a captured step "
                    "would do only once: give it device='jax'"
                )
            if result.device.type == "jax" and result.device is not self.place:
                self._compute_on(result.device, f"the result of {op.name}()")
            if id(result) not in self.before:
                self.results.append((weakref.ref(result), op.name))
        elif isinstance(result, (list, tuple)):
            for item in result:
                self._note(item, op)

    def check_left(self, taken: set[int]) -> None:
        """Raise if a tensor that the step made still exists after the step.

        Args:
            taken: ids of tensors that may exist.
        """
        for ref, name in self.results:
            tensor = ref()
            if tensor is None or id(tensor) in taken or id(tensor) in self.before:
                continue
            if isinstance(tensor.array, jax.core.Tracer):
                raise CaptureError(
                    f"a tensor of shape {tuple(tensor.shape)}, made by {name}(), outlives the "
                    "step that made it: it has no values, because the step was only traced. Return "
                    "it from the step, or copy the detached values into a tensor that existed "
                    "before the step"
                )


def _draws(op: Any) -> bool:
    """Whether an operator draws random numbers."""
    return any(argument.type.base == "Generator" for argument in op.schema.arguments)
