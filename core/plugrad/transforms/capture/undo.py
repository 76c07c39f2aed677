"""A listener that notes what a run changes, and puts it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugrad._generated.calls import call_clone, call_copy_, call_detach
from plugrad.autograd.grad_mode import inference_mode
from plugrad.dispatch.backends.active import active_backends
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Scope
from plugrad.ops.composite.selection.getitem import getitem
from plugrad.plugins.tracing import Before, Listener
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.base import TensorBase, is_inference

# Arguments that operators write to without saying so in their schema, which is PyTorch's.
UNANNOUNCED = {"native_batch_norm": ("running_mean", "running_var")}


def written(op: Operator, args: tuple[Any, ...]) -> list[TensorBase]:
    """The arguments that a call writes to."""
    found: list[TensorBase] = []
    unannounced = UNANNOUNCED.get(op.name, ())
    if op.schema.mutates or unannounced:
        for argument, value in zip(op.schema.arguments, args, strict=True):
            alias = argument.type.alias
            if (alias is not None and alias.is_write) or argument.name in unannounced:
                found += [each for each in _items(value) if isinstance(each, TensorBase)]
    return found


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _items(item)
    else:
        yield value


class silently(Scope):
    """Context manager: there are no listeners to the block, and it is not recorded."""

    def read(self, state: LocalState) -> Any:
        return state.trace, state.array_log, state.grad_enabled

    def change(self, state: LocalState) -> None:
        state.trace, state.array_log, state.grad_enabled = None, None, False

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace, state.array_log, state.grad_enabled = before


def copied(tensor: TensorBase) -> TensorBase:
    """The elements as they are now, in memory of their own."""
    with silently():
        return call_clone(call_detach(tensor), None)


class Undo(Listener):
    """Notes what tensors, gradients and generators were before a run; `restore` makes them so.

    Attributes:
        before: what tensors were, by id, for all that the run met and did not make.
        own: ids of the tensors that the run made, and whether an operator did.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[int, Before] = {}
        self.own: dict[int, bool] = {}
        self.inside = 0
        self._contents: list[tuple[TensorBase, TensorBase]] = []
        self._saved: set[int] = set()
        self._states: dict[int, tuple[Any, Any]] = {}
        for active in active_backends():
            for index in range(active.backend.device_count()):
                self.keep_state(active.generator(index))

    def keep_state(self, generator: Any) -> None:
        """Have a generator go on from here after `restore`."""
        if id(generator) not in self._states:
            self._states[id(generator)] = (generator, generator.get_state())

    def meet(self, tensor: TensorBase) -> Before:
        """What a tensor was before the run."""
        found = self.before.get(id(tensor))
        if found is None:
            found = Before(tensor)
            self.before[id(tensor)] = found
        return found

    def made(self, tensor: Any) -> None:
        self.own[id(tensor)] = self.inside > 0

    def note(self, tensor: Any) -> None:
        if id(tensor) not in self.own:
            self.meet(tensor)

    def grad_assigned(self, tensor: Any) -> None:
        if id(tensor) not in self.own:
            self.meet(tensor)

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        if kind == "call":
            self.prepare(op, args)
        return super().dispatch(kind, op, keyset, args)

    def prepare(self, op: Operator, args: tuple[Any, ...]) -> None:
        """Note what a call may change."""
        for value in _items(args):
            if isinstance(value, TensorBase):
                if id(value) not in self.own:
                    self.meet(value)
            elif value is not None and hasattr(value, "get_state"):
                self.keep_state(value)
        for tensor in written(op, args):
            self._keep_contents(tensor)

    def _keep_contents(self, tensor: TensorBase) -> None:
        if id(tensor) in self._saved or tensor.device.type == "meta":
            return
        if tensor._keyset & FUNCTIONALIZE_BIT:
            return  # its array stays what it is, and `before` has it
        if self.own.get(id(tensor), False) and tensor._shared_storage is None:
            return  # an operator's result, and no view
        self._saved.add(id(tensor))
        with silently():
            # Each element once, even after `expand`.
            once = [slice(0, 1) if step == 0 else slice(None) for step in strides(tensor)]
            alias = getitem(call_detach(tensor), tuple(once))
            self._contents.append((alias, call_clone(alias, None)))
            # Nothing else gets its id.
            self._contents.append((tensor, tensor))

    def run_node(self, node: Any, grads: Any) -> Any:
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, TensorBase) and id(leaf) not in self.own:
            self.meet(leaf)
        return super().run_node(node, grads)

    def restore(self) -> None:
        """Put everything back."""
        with silently():
            for alias, copy in reversed(self._contents):
                if alias is not copy:
                    with inference_mode(is_inference(alias)):
                        call_copy_(alias, copy, False)
        for before in self.before.values():
            before.restore()
        for generator, state in self._states.values():
            generator.set_state(state)
