"""Captures a step while it really runs. Code that cannot be captured only ends the capture."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrad.dispatch.operator import Operator
from plugrad.plugins.tracing import Listener
from plugrad.tensor.base import TensorBase
from plugrad.tensor.interop.arrays import host_array
from plugrad.transforms.capture.errors import CaptureError
from plugrad.transforms.capture.recorder import Recorder
from plugrad.transforms.capture.undo import silently


class Observer(Recorder):
    """A `Recorder` that never makes the step fail.

    Attributes:
        reason: why the step has no graph; "" as long as it has one.
        made_by: weak references to the tensors that operators returned, and the operators' names.
    """

    def __init__(self, inputs: list[TensorBase], reserved: Any = ()) -> None:
        self.reason = ""
        self.made_by: list[tuple[weakref.ref[Any], str]] = []
        super().__init__(inputs, reserved)
        # The devices' generators; a step's other generators are found during the run.
        self._generators = len(self._states)
        self._generator_states = self._states_now()

    def stop(self, reason: str) -> None:
        """There will be no graph."""
        if not self.reason:
            self.reason = reason.removeprefix("capture(): ")

    def _unless_stopped(self, call: Callable[..., Any], *args: Any) -> Any:
        if self.reason:
            return None
        try:
            return call(*args)
        except CaptureError as error:
            self.stop(str(error))
            return None

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        if self.reason:
            return Listener.dispatch(self, kind, op, keyset, args)
        if self.inside or kind != "call":
            return super().dispatch(kind, op, keyset, args)
        self.check_generators()
        result = super().dispatch(kind, op, keyset, args)
        self._generator_states = self._states_now()
        return result

    def check_generators(self) -> None:
        """Stop if a generator of random numbers was set between two operators, as checkpoints do
        that compute again."""
        if not self.reason and self._states_now() != self._generator_states:
            self.stop("the state of a generator of random numbers is set within the step")

    def _states_now(self) -> list[Any]:
        with silently():
            found = [generator.get_state() for generator, _ in list(self._states.values())]
            return [_comparable(state) for state in found[: self._generators]]

    def run_node(self, node: Any, grads: Any) -> Any:
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, TensorBase) and id(leaf) not in self.own:
            self._unless_stopped(self.name_of, leaf)
        if self.reason:
            return Listener.run_node(self, node, grads)
        return super().run_node(node, grads)

    # The step is not undone, so no contents are stored.

    def _keep_contents(self, tensor: TensorBase) -> None:
        pass

    # What raises in a recorder

    def _refs(self, value: Any) -> Any:
        return self._unless_stopped(super()._refs, value)

    def _finish(self, op: Operator, refs: Any, args: Any, result: Any) -> None:
        self._unless_stopped(super()._finish, op, refs, args, result)

    def _forget(self, mark: int) -> None:
        self._unless_stopped(super()._forget, mark)

    def _note_copy(self, op: Operator, args: tuple[Any, ...], result: TensorBase) -> None:
        self._unless_stopped(super()._note_copy, op, args, result)

    def append(self, op: Operator, refs: tuple[Any, ...], args: Any, result: Any) -> None:
        super().append(op, refs, args, result)
        for each in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(each, TensorBase) and id(each) in self.own:
                self.made_by.append((weakref.ref(each), op.name))

    def read(self, tensor: Any) -> None:
        self._unless_stopped(super().read, tensor)

    def note(self, tensor: Any) -> None:
        self._unless_stopped(super().note, tensor)
        Listener.note(self, tensor)

    def enter_function(
        self, ctx: Any, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        if self.reason:
            Listener.enter_function(self, ctx, name, inputs, recorded)
        else:
            super().enter_function(ctx, name, inputs, recorded)

    def tensor_named(self, name: str) -> TensorBase:
        """The tensor that a value of the graph was."""
        return self._tensors[name]


def _comparable(state: Any) -> Any:
    """A generator's state, of whatever type its backend has for it, as one that has `==`."""
    if isinstance(state, TensorBase):
        return host_array(state).tobytes()
    return state.tobytes() if isinstance(state, np.ndarray) else repr(state)
