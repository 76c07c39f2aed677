"""Dual tensors: the tangents of forward mode, their levels, and their lifetime.

A dual tensor is an ordinary tensor with a tangent in its `AutogradMeta` and the bit of `ForwardAD`
in its key set, so its operators run the kernels of `graph/forward_kernel.py`. Both are removed when
its level ends.

For other parts of plugrad, which may have several levels alive as long as no operator meets
tensors of two of them (a transform wraps tensors, and each of its levels has wrappers of its own):

    level = enter_level()               # no check for nesting
    x = dual(primal, tangent, level)    # a view of `primal` with a tangent
    t = tangent_of(x)                   # None if it has none; primal_of(x) is a view without
    exit_level(level)                   # its tensors are not dual tensors any more

(`dual`, `tangent_of` and `primal_of` are in `graph/dual_tensors.py`.)

Tensors get the level of the tangents that they were computed from. While a rule runs, the thread's
`kept` lacks `FORWARD_AD_BIT`: all tensors then act as their primals, without tangents.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope
from plugrad.tensor.base import TensorBase, materialize_meta

# The number of references that are kept before dead ones are dropped.
_SWEEP_AT: Final = 64


@final
class ForwardLevel:
    """The dual tensors of one computation in forward mode; it ends for all of them at once.

    Attributes:
        active: whether it has not been exited.
        states: the threads that route all calls through `ForwardAD` because of this level: one of
            their views may have a tangent without carrying the key.
    """

    def __init__(self) -> None:
        self.active: bool = True
        self.states: list[LocalState] = []
        self._references: list[Any] = []
        self._sweep_at: i64 = _SWEEP_AT

    def note(self, tensor: TensorBase) -> None:
        """Store a dual tensor by a weak reference."""
        references = self._references
        references.append(weakref.ref(tensor))
        if len(references) >= self._sweep_at:
            alive = [reference for reference in references if reference() is not None]
            self._references = alive
            self._sweep_at = max(_SWEEP_AT, 2 * len(alive))

    def end(self) -> None:
        """Take the tangents from all dual tensors."""
        self.active = False
        references = self._references
        self._references = []
        for reference in references:
            tensor: TensorBase | None = reference()
            if tensor is not None:
                drop_tangent(tensor, self)
        for state in self.states:
            state.included = state.included & ~FORWARD_AD_BIT
        self.states = []


@final
class Tangent:
    """The tangent of one tensor, and its level."""

    def __init__(self, value: TensorBase, level: ForwardLevel) -> None:
        self.value = value
        self.level = level


def enter_level() -> ForwardLevel:
    """Begin a level; others may be active."""
    return ForwardLevel()


def exit_level(level: ForwardLevel) -> None:
    """End a level: its tensors have no tangents any more. Idempotent."""
    level.end()


@final
class AtForwardLevel(Scope):
    """Context manager, for one use: a level that ends with the block; its value is the level."""

    def __init__(self) -> None:
        self.level = ForwardLevel()

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def restore(self, state: LocalState, before: Any) -> None:
        self.level.end()

    def value(self) -> Any:
        return self.level


def attach_tangent(tensor: TensorBase, value: TensorBase, level: ForwardLevel) -> None:
    """Make a tensor a dual one, with `value` itself for its tangent."""
    materialize_meta(tensor).tangent = Tangent(value, level)
    tensor._keyset = tensor._keyset | FORWARD_AD_BIT
    level.note(tensor)


def drop_tangent(tensor: TensorBase, level: ForwardLevel) -> None:
    """Make a tensor of a level an ordinary one."""
    meta = tensor._autograd_meta
    if meta is not None:
        tangent = meta.tangent
        if tangent is None or tangent.level is level:
            meta.tangent = None
            tensor._keyset = tensor._keyset & ~FORWARD_AD_BIT


def own_tangent(tensor: TensorBase) -> Tangent | None:
    """The tangent that a tensor holds itself."""
    meta = tensor._autograd_meta
    return None if meta is None else meta.tangent


def notice_views(state: LocalState, level: ForwardLevel) -> None:
    """Route every call of a thread through `ForwardAD` until the level ends.

    A write has given a tangent to a tensor with views. The views now have tangents, too, but lack
    the key, and the tensor has no references to them.
    """
    if state.included & FORWARD_AD_BIT == 0:
        state.included = state.included | FORWARD_AD_BIT
        level.states.append(state)
