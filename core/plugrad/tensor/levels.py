"""Levels: each running `vmap`, `grad`, `jvp` or similar transform adds one; and the tensors of a
level.

    vmap(grad(f))(x)      level 2, grad:  tensor -> Wrapped(value, level 2)
                                                       |
                          level 1, vmap:             tensor -> Wrapped(value, level 1, batch dim 0)
                                                                         |
                          outside:                                     x, with its batch dimension

While a transform runs, its level is on top of the thread's stack (`LocalState.level`), and the key
`Transforms` is included in every call. A tensor of a level has a `Wrapped` in place of an array: a
tensor of a level further out. A level of kind "grad" records it in its own graph, one of kind
"vmap" hides a dimension, and with one of kind "functional" writes to its tensors do not reach the
tensors outside. The innermost level runs a call first, on tensors of that level. It then continues
one level further out, with the thread's state at the time when the level began: `step_out`.
`plugrad.levels` implements this.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

from mypy_extensions import i64

from plugrad.dispatch.keys import (
    AUTOCAST_BIT,
    FORWARD_AD_BIT,
    FUNCTIONALIZE_BIT,
    OUTER_LEVEL,
    TRANSFORMS_BIT,
    tensor_keyset,
)
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.tensor.base import TensorBase, make_tensor, sizes_of

VMAP: Final = "vmap"
GRAD: Final = "grad"
JVP: Final = "jvp"
FUNCTIONAL: Final = "functional"

LEVEL_KEYSET: Final[i64] = tensor_keyset(OUTER_LEVEL) | TRANSFORMS_BIT
# Where a tensor of a level has no dimension that is mapped over.
UNBATCHED: Final = -1


@final
class Level:
    """One transform that runs.

    Attributes:
        kind: "vmap", "grad" (whatever records a graph), "jvp" or "functional".
        number: 1 for the outermost level.
        outer: the next level further out, None if there is none.
        alive: whether it still runs; tensors that got out of it are read through.
        included, kept, grad_enabled: the thread's state where it began.
        batch_size, randomness: of a vmap; see `VmapInfo`.
        forward: what forward mode keeps for the level, of a jvp.
        copies_views: whether views are copies, of a functional level.
        keyset: of the level's tensors.
    """

    def __init__(
        self, kind: str, outer: Level | None, state: LocalState, batch_size: int, randomness: str
    ) -> None:
        self.kind = kind
        self.outer = outer
        self.number: int = 1 if outer is None else outer.number + 1
        self.alive = True
        self.included: i64 = state.included
        self.kept: i64 = state.kept
        self.grad_enabled: bool = state.grad_enabled
        self.batch_size = batch_size
        self.randomness = randomness
        self.forward: Any = None
        self.copies_views = False
        self.keyset: i64 = LEVEL_KEYSET
        if kind == FUNCTIONAL:
            self.keyset = LEVEL_KEYSET | FUNCTIONALIZE_BIT


@final
class Wrapped:
    """The content of a level's tensor, in place of an array.

    Attributes:
        value: the tensor one or more levels further out.
        level: the level of the tensor.
        batch_dim: the dimension of `value` that is mapped over, `UNBATCHED` for none.
    """

    def __init__(self, value: TensorBase, level: Level, batch_dim: int) -> None:
        self.value = value
        self.level = level
        self.batch_dim = batch_dim

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the level sees: without the dimension that is mapped over."""
        sizes = sizes_of(self.value)
        dim = self.batch_dim
        return sizes if dim < 0 else sizes[:dim] + sizes[dim + 1 :]

    @property
    def dtype(self) -> Any:
        return self.value.dtype


def push_level(kind: str, batch_size: int = 0, randomness: str = "error") -> Level:
    """Begin a level on this thread; `pop_level` ends it."""
    state = current_state()
    outer: Level | None = state.level
    level = Level(kind, outer, state, batch_size, randomness)
    state.level = level
    state.included = state.included | TRANSFORMS_BIT
    if kind == GRAD:
        state.grad_enabled = True
    elif kind == JVP:
        # Also where forward mode is off outside.
        state.kept = state.kept | FORWARD_AD_BIT
    return level


def pop_level(level: Level) -> None:
    """End a level, the thread's innermost one: the thread's keys are what they were before."""
    state = current_state()
    level.alive = False
    state.level = level.outer
    state.included = _outer_keys(state, level)
    state.kept = level.kept
    state.grad_enabled = level.grad_enabled


def _outer_keys(state: LocalState, level: Level) -> i64:
    """The keys included outside a level. Autocast is a matter of the region, not of levels."""
    return (level.included & ~AUTOCAST_BIT) | (state.included & AUTOCAST_BIT)


@final
class AtLevel(Scope):
    """Context manager, for one use: a level that runs on this thread; its value is the Level."""

    def __init__(self, kind: str, batch_size: int = 0, randomness: str = "error") -> None:
        self.kind = kind
        self.batch_size = batch_size
        self.randomness = randomness
        self.level: Level | None = None

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        self.level = push_level(self.kind, self.batch_size, self.randomness)

    def restore(self, state: LocalState, before: Any) -> None:
        level = self.level
        if level is not None:
            pop_level(level)

    def value(self) -> Any:
        return self.level


@final
class Stepped:
    """What `step_out` changed of a thread's state."""

    def __init__(self, state: LocalState, level: Level) -> None:
        self.level = level
        self.included: i64 = state.included
        self.kept: i64 = state.kept
        self.grad_enabled: bool = state.grad_enabled


def step_out(state: LocalState, level: Level) -> Stepped:
    """Go one level further out, to do there what the thread's innermost level leaves to be done.

    As in PyTorch, calls outside a grad are recorded unless grad mode is off, either where the grad
    began or now.
    """
    stepped = Stepped(state, level)
    state.level = level.outer
    state.included = _outer_keys(state, level)
    state.kept = level.kept
    if level.kind == GRAD and not level.grad_enabled:
        state.grad_enabled = False
    return stepped


def step_in(state: LocalState, stepped: Stepped) -> None:
    """Come back from `step_out`."""
    state.level = stepped.level
    state.included = stepped.included
    state.kept = stepped.kept
    state.grad_enabled = stepped.grad_enabled


@final
class SteppedOut(Scope):
    """Context manager: this thread is one level further out; see `step_out`."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def read(self, state: LocalState) -> Any:
        return Stepped(state, self.level)

    def change(self, state: LocalState) -> None:
        step_out(state, self.level)

    def restore(self, state: LocalState, before: Any) -> None:
        step_in(state, before)


def wrapped_of(tensor: TensorBase) -> Wrapped | None:
    """What a tensor of a level wraps; None for an ordinary one."""
    if tensor._keyset & TRANSFORMS_BIT == 0:
        return None
    array: Wrapped = tensor._backend_array
    return array


def make_level_tensor(value: TensorBase, level: Level, batch_dim: int = UNBATCHED) -> TensorBase:
    """A tensor of a level, outside its graph so far."""
    wrapped = Wrapped(value, level, batch_dim)
    return make_tensor(wrapped, value.dtype, value.device, level.keyset)


def value_at(tensor: TensorBase, level: Level) -> TensorBase:
    """What a tensor is one level further out: itself if it is none of this level's."""
    if tensor._keyset & TRANSFORMS_BIT == 0:
        return tensor
    wrapped: Wrapped = tensor._backend_array
    return wrapped.value if wrapped.level is level else tensor


def is_at(tensor: TensorBase, level: Level) -> bool:
    """Whether it is a tensor of this level."""
    if tensor._keyset & TRANSFORMS_BIT == 0:
        return False
    wrapped: Wrapped = tensor._backend_array
    return wrapped.level is level


def living(tensor: TensorBase) -> TensorBase:
    """A tensor without the levels that have ended, as one that got out of its function has.

    Raises:
        RuntimeError: it got out of a vmap, and so without the dimension that was mapped over.
    """
    while tensor._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        if wrapped.level.alive:
            break
        if wrapped.batch_dim >= 0:
            raise RuntimeError(
                "Either your tensor may have escaped from inside a function being vmapped and this "
                "is a user error: return it from the function instead, or there is an internal "
                "error in plugrad"
            )
        tensor = wrapped.value
    return tensor


_CONTROL_FLOW: Final = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet; plugrad.where chooses element by element."
)
_ITEM: Final = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations."
)


def readable(tensor: TensorBase, control_flow: bool = False) -> TensorBase:
    """The ordinary tensor with the elements of one of a level.

    Raises:
        RuntimeError: it has other elements for each element of a batch.
    """
    while tensor._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        if wrapped.batch_dim >= 0:
            _refuse(control_flow)
        tensor = wrapped.value
    return tensor


def _refuse(control_flow: bool) -> NoReturn:
    raise RuntimeError(_CONTROL_FLOW if control_flow else _ITEM)


def is_mapped(tensor: TensorBase) -> bool:
    """Whether it has other elements for each element of a batch, so that it cannot be read."""
    while tensor._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        if wrapped.batch_dim >= 0:
            return True
        tensor = wrapped.value
    return False


def is_mapped_innermost(tensor: TensorBase) -> bool:
    """Whether the thread's innermost level maps over one of a tensor's dimensions."""
    wrapped = wrapped_of(tensor)
    return wrapped is not None and wrapped.level is current_state().level and wrapped.batch_dim >= 0


def is_mapped_like(tensor: TensorBase, other: TensorBase) -> bool:
    """Whether all levels that map over `other` map over `tensor`, too."""
    mapping = _mapping_levels(tensor)
    for level in _mapping_levels(other):  # noqa: SIM110  # needs no generator
        if level not in mapping:
            return False
    return True


def _mapping_levels(tensor: TensorBase) -> list[int]:
    found: list[int] = []
    while tensor._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        if wrapped.batch_dim >= 0:
            found.append(wrapped.level.number)
        tensor = wrapped.value
    return found


def whole_batch(tensor: TensorBase) -> TensorBase:
    """The ordinary tensor with the elements of a tensor of levels, for all elements of a batch."""
    while tensor._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        tensor = wrapped.value
    return tensor


def in_transform() -> bool:
    """Whether this thread runs some transform."""
    return current_state().level is not None
