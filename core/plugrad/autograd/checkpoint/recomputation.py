"""Checkpoints without a reentrant pass: save nothing, run the function again, use what it saves.

A *region* is one call of a checkpointed function. While it runs, every saved tensor is replaced by
an empty *slot*. When backward first reads a slot, the function runs again, and what it saves this
time, in the same order, fills the slots. Each value is returned once per pass and then released.

Regions nest: a region's inputs are saved tensors of the region around it, so reading an inner slot
runs the outer functions first, as far as needed.
"""

from __future__ import annotations

# Interpreted: mypyc subclasses no built-in exception.
import contextlib
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from plugrad.autograd.engine.callbacks import current_graph_task_id
from plugrad.autograd.grad_mode import enable_grad
from plugrad.autograd.saved_tensors import saved_tensors_hooks
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.graph.saved_tensor import SavedTensor, make_saved_tensor
from plugrad.tensor.base import TensorBase, detached

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`plugrad.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with plugrad.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint-debug mode globally.
"""


class CheckpointError(RuntimeError):
    """The recomputation of a checkpointed function did not go as the first run did.

    >>> import plugrad
    >>> issubclass(plugrad.utils.checkpoint.CheckpointError, RuntimeError)
    True
    """


# Numbers for groups that count as a pass outside of one, below -1, which means none.
_outside = itertools.count(2)


class GraphExecGroup(Scope):
    """Context manager: for recomputation, the backward passes within it count as one.

    What one pass recomputed serves the next one. No two of them may need the same saved tensor.

    Raises:
        RuntimeError: on entering, within another group; in backward, if passes overlap.

    >>> import plugrad
    >>> from plugrad.autograd.checkpoint.recomputation import GraphExecGroup
    >>> with GraphExecGroup():
    ...     pass
    """

    def read(self, state: LocalState) -> Any:
        return state.checkpoint_group

    def change(self, state: LocalState) -> None:
        if state.checkpoint_group:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Tried to enter a GraphExecGroup "
                "while one is in force already."
            )
        state.checkpoint_group = -next(_outside)

    def restore(self, state: LocalState, before: Any) -> None:
        state.checkpoint_group = before


class _Enough(BaseException):
    """Stops a recomputation; the function must not catch it as one of its own errors."""


class _Slot:
    """Stands in the graph for a saved tensor: values by pass; None once it was returned."""

    def __init__(self) -> None:
        self.values: dict[int, TensorBase | None] = {}


class Region:
    """One call of a checkpointed function, and how to repeat it.

    Args:
        rerun: calls the function again, in the state it had been called in.
        args: its positional arguments; tensors among them are saved.
        early_stop: whether a recomputation ends with the last tensor that is needed.
        describe: the properties that a saved and a recomputed tensor must share.
        explain: makes a CheckpointError a better one.
    """

    def __init__(
        self,
        rerun: Callable[..., Any],
        args: tuple[Any, ...],
        early_stop: bool,
        describe: Callable[[Any], Any],
        explain: Callable[[CheckpointError], CheckpointError] | None,
    ) -> None:
        self._rerun = rerun
        self._args = [
            make_saved_tensor(value) if isinstance(value, TensorBase) else value for value in args
        ]
        self._early_stop = early_stop
        self._describe = describe
        self._explain = explain
        # Slots die with the nodes that hold them.
        self._slots: list[weakref.ref[_Slot]] = []
        self._descriptions: list[Any] = []
        self._complete = False
        self._backward_inside = False

    def recorded(self) -> Any:
        """Context manager: the first run of the function."""
        return saved_tensors_hooks(self._pack, self._unpack)

    def complete(self) -> None:
        """The first run ended well."""
        self._complete = True

    def _pack(self, tensor: Any) -> _Slot:
        slot = _Slot()
        self._slots.append(weakref.ref(slot))
        self._descriptions.append(self._describe(tensor))
        return slot

    def _unpack(self, slot: _Slot) -> Any:
        try:
            return self._take(slot)
        except CheckpointError as error:
            if self._explain is None:
                raise
            raise self._explain(error) from error

    def _take(self, slot: _Slot) -> TensorBase:
        group = current_state().checkpoint_group
        number = group or current_graph_task_id()
        if number == -1:
            return self._take_outside(slot)
        if number not in slot.values:
            # Threads of several devices may run this at once. Each recomputes for itself: waiting
            # for the other could be waiting for oneself, if the function runs a pass of its own.
            self._recompute(number, slot)
        value = slot.values[number]
        if value is None and group:
            raise RuntimeError(
                "Performing two backward calls that overlap (i.e. require the same saved "
                "activation in order to compute gradients) is not allowed while under the same "
                "GraphExecGroup context."
            )
        if value is None:
            raise CheckpointError(
                "plugrad.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once. Otherwise please open an issue with details on your use case."
            )
        slot.values[number] = None
        return value

    def _take_outside(self, slot: _Slot) -> TensorBase:
        """For reading a saved tensor outside of a pass: it counts as a pass."""
        number = -next(_outside)
        self._recompute(number, slot)
        value = slot.values[number]
        assert value is not None
        for reference in self._slots:
            filled = reference()
            if filled is not None:
                filled.values.pop(number, None)
        return value

    def _recompute(self, number: int, slot: _Slot) -> None:
        """Run the function again and fill the slots for a pass, one slot in any case."""
        args = [item.unpack() if isinstance(item, SavedTensor) else item for item in self._args]
        count = 0

        def pack(tensor: Any) -> Any:
            nonlocal count
            count += 1
            # Not by the operator, which a log of the recomputation would show.
            kept = detached(tensor) if tensor.requires_grad else tensor
            self._fill(number, count - 1, kept)
            return kept

        # Backward within the function finds what this run saved in place.
        with (
            contextlib.suppress(_Enough),
            saved_tensors_hooks(pack, _as_packed),
            enable_grad(),
        ):
            self._rerun(*args)
        self._check(number, count)
        if number not in slot.values:
            raise CheckpointError(
                "plugrad.utils.checkpoint: the recomputation did not save a tensor that the "
                f"original forward saved.\n{TIP}"
            )

    def _fill(self, number: int, index: int, tensor: TensorBase) -> None:
        """Put the recomputed tensor `index` into its slot, if that is still there."""
        if index >= len(self._slots):
            if not self._complete:
                # Backward within the first run: the first run saved fewer tensors than the
                # recomputation.
                self._backward_inside = True
                return
            raise CheckpointError(
                "plugrad.utils.checkpoint: trying to save more tensors during recomputation than "
                f"during the original forward pass.\n{TIP}"
            )
        slot = self._slots[index]()
        if slot is not None:
            slot.values.setdefault(number, tensor)
        if self._early_stop and index + 1 == len(self._slots):
            raise _Enough

    def _check(self, number: int, count: int) -> None:
        """Compare the tensors that the recomputation saved with the first run's."""
        if self._backward_inside:
            return
        if count != len(self._slots):
            raise CheckpointError(
                "plugrad.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self._slots)}\n"
                f"Number of tensors saved during recomputation: {count}.\n{TIP}"
            )
        differing = ""
        for index, reference in enumerate(self._slots):
            slot = reference()
            value = None if slot is None else slot.values.get(number)
            if value is None:
                continue
            found = self._describe(value)
            if found != self._descriptions[index]:
                differing += (
                    f"tensor at position {index}:\n"
                    f"saved metadata: {self._descriptions[index]}\n"
                    f"recomputed metadata: {found}\n"
                )
        if differing:
            raise CheckpointError(
                "plugrad.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{differing}.\n{TIP}"
            )


def _as_packed(tensor: Any) -> Any:
    return tensor
