"""Forward mode: tangents are computed along with values, which gives Jacobian-vector products.

Between `enter_dual_level` and `exit_dual_level` a tensor may have a tangent. Operators on such
*dual tensors* give dual tensors.

>>> import plugrad
>>> import plugrad.autograd.forward_ad as fwAD
>>> x, v = plugrad.tensor([1.0, 2.0]), plugrad.tensor([1.0, 0.5])
>>> with fwAD.dual_level():
...     y = fwAD.make_dual(x, v) ** 2
...     fwAD.unpack_dual(y).tangent
tensor([2., 2.])

Other parts of plugrad, which need several levels at a time, use
`plugrad.tensor.dual` (`enter_level`, `exit_level`) and `plugrad.graph.dual_tensors` (`dual`,
`tangent_of`, `primal_of`).
"""

from __future__ import annotations

# Interpreted: it runs once per level and dual tensor that a user makes.
from typing import TYPE_CHECKING, Any, NamedTuple

from plugrad.autograd.grad_mode import ModeManager, _SetAtOnce
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.graph.dual_tensors import check_sizes, dual, primal_of, tangent_of
from plugrad.levels.arguments import values_at
from plugrad.levels.batching import any_batched, batch_dim_of
from plugrad.levels.mapping import batch_of
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.dual import ForwardLevel, enter_level, exit_level
from plugrad.tensor.levels import VMAP, Level, SteppedOut, is_at, make_level_tensor

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

# The number of the innermost level, and the levels by number. There is one for the whole process.
_current_level = -1
_levels: list[ForwardLevel] = []


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the primal, and the tangent, which is None if there is none."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level, in which tensors may have tangents; returns its number.

    Raises:
        RuntimeError: there is one already.
    """
    global _current_level
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append(enter_level())
    _current_level = len(_levels) - 1
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: all its dual tensors lose their tangents.

    Args:
        level: its number; the one entered last by default.

    Raises:
        RuntimeError: it is not the one that was entered last, or there is none.
    """
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    _end_levels(level)


def _end_levels(remaining: int) -> None:
    """End levels until only that many remain. Idempotent, also if it is stopped midway."""
    global _current_level
    while len(_levels) > remaining:
        exit_level(_levels[-1])
        _levels.pop()
    _current_level = remaining - 1


@explains
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Any:
    """A view of a tensor that has a tangent. It is differentiable in reverse mode, too.

    Args:
        tensor: the primal, of any shape, floating point or complex.
        tangent: of the same shape; becomes the tangent itself if it has the primal's memory layout;
            otherwise a copy does.
        level: the level's number; the innermost one by default.

    Raises:
        RuntimeError: there is no level, the tensor or the tangent is a dual tensor already, or
            their shapes differ.
        ValueError: one of them is neither floating point nor complex.

    >>> import plugrad
    >>> import plugrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(plugrad.ones(2), plugrad.zeros(2))
    tensor([1., 1.], tangent=tensor([0., 0.]))
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for what, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {given.dtype}"
            )
    return _dual(tensor, tangent, _level(level, "_make_dual"))


@explains
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor.

    The primal is a view without a tangent. The tangent is the tensor itself, not a copy. Outside
    all levels the tensor itself is the primal. Both are differentiable in reverse mode.

    Args:
        level: the level's number; the innermost one by default.

    >>> import plugrad
    >>> import plugrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.unpack_dual(plugrad.ones(2))
    UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    _level(level, "_fw_primal")
    return UnpackedDualTensor(*_unpacked(tensor))


def _dual(tensor: Any, tangent: Any, level: ForwardLevel) -> Any:
    """`dual`, also within `vmap`, where mapped tensors have a tangent for every element."""
    state = current_state()
    mapped: Level | None = state.level
    if mapped is None or mapped.kind != VMAP:
        return dual(tensor, tangent, level)
    check_sizes(tensor, tangent)
    is_batch = any_batched(tuple(batch_dim_of(value, mapped) for value in (tensor, tangent)))
    if is_batch:
        primal, along = batch_of(tensor, mapped, 0), batch_of(tangent, mapped, 0)
    else:
        primal, along = values_at((tensor, tangent), mapped)
    with SteppedOut(mapped):
        made = _dual(primal, along, level)
    return make_level_tensor(made, mapped, 0) if is_batch else made


def _unpacked(tensor: Any) -> tuple[Any, Any]:
    """Primal and tangent, also of tensors that `vmap` maps over."""
    state = current_state()
    mapped: Level | None = state.level
    if mapped is None or mapped.kind != VMAP or not is_at(tensor, mapped):
        return primal_of(tensor), tangent_of(tensor)
    dim = batch_dim_of(tensor, mapped)
    (value,) = values_at((tensor,), mapped)
    with SteppedOut(mapped):
        parts = _unpacked(value)
    primal, tangent = [
        part if part is None or dim is None else make_level_tensor(part, mapped, dim)
        for part in parts
    ]
    return primal, tangent


def _level(number: int, function: str) -> ForwardLevel:
    if number >= len(_levels):
        raise RuntimeError(f"Invalid level given to {function}")
    return _levels[number]


class dual_level(ModeManager):
    """Context manager and decorator: a level in which tensors may have tangents.

    >>> import plugrad
    >>> import plugrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     y = fwAD.make_dual(plugrad.ones(1), plugrad.ones(1)) * 3
    ...     fwAD.unpack_dual(y).tangent
    tensor([3.])
    >>> fwAD.unpack_dual(y).tangent is None
    True
    """

    def __init__(self) -> None:
        super().__init__(True)

    def clone(self) -> Any:
        return type(self)()

    def read(self, state: LocalState) -> Any:
        return len(_levels)

    def change(self, state: LocalState) -> None:
        enter_dual_level()

    def restore(self, state: LocalState, before: Any) -> None:
        _end_levels(before)

    def value(self) -> int:
        return _current_level


def _is_fwd_grad_enabled() -> bool:
    """Whether operators on dual tensors compute tangents on this thread."""
    return current_state().kept & FORWARD_AD_BIT != 0


class _set_fwd_grad_enabled(_SetAtOnce):
    """Says whether dual tensors have tangents on this thread, at once; as a context manager it puts
    the old mode back."""

    def read(self, state: LocalState) -> Any:
        before: list[tuple[Any, Any]] = [(state, state.kept & FORWARD_AD_BIT)]
        level: Level | None = state.level
        while level is not None and not self.mode:
            before.append((level, level.kept & FORWARD_AD_BIT))
            level = level.outer
        return before

    def change(self, state: LocalState) -> None:
        if self.mode:
            state.kept = state.kept | FORWARD_AD_BIT
            return
        state.kept = state.kept & ~FORWARD_AD_BIT
        # What a transform computes one level further out has no tangents there either.
        level: Level | None = state.level
        while level is not None:
            level.kept = level.kept & ~FORWARD_AD_BIT
            level = level.outer

    def restore(self, state: LocalState, before: Any) -> None:
        for changed, bit in before:
            changed.kept = changed.kept & ~FORWARD_AD_BIT | bit
