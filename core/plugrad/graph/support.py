"""Small pieces that generated autograd kernels and nodes share."""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

from mypy_extensions import i64

from plugrad.dispatch.keys import FORWARD_AD_BIT, TRANSFORMS_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.graph.history import check_inplace, set_history, start_at_view
from plugrad.graph.node import Node
from plugrad.graph.saved_variable import SavedVariable, save
from plugrad.tensor.aliasing.alias_kernels import check_inplace_shape
from plugrad.tensor.aliasing.overlap import APART, check_operands
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.promotion import check_inplace_cast


@final
class _Operators:
    """Operators that floor 2 calls by name, looked up once."""

    def __init__(self) -> None:
        self._found: dict[str, Operator] = {}

    def __getitem__(self, name: str) -> Operator:
        op = self._found.get(name)
        if op is None:
            op = find_operator("plugrad::" + name)
            if op is None:
                raise RuntimeError(f"the operator plugrad::{name} is not defined")
            self._found[name] = op
        return op


operators: Final = _Operators()


def any_defined(grads: list[TensorBase | None]) -> bool:
    for grad in grads:  # noqa: SIM110  # needs no generator
        if grad is not None:
            return True
    return False


def wants_any(node: Node, start: i64, count: i64) -> bool:
    """Whether the running pass needs any of `count` outputs of a node from `start` on."""
    index = start
    while index < start + count:
        if node._wants(index):
            return True
        index += 1
    return False


def save_list(tensors: Any) -> list[SavedVariable | None]:
    return [save(tensor) for tensor in tensors]


def unpack_list(saved: list[SavedVariable | None] | None, node: Node) -> list[Any]:
    assert saved is not None
    return [None if item is None else item.unpack(node) for item in saved]


def set_history_list(tensors: Any, node: Node) -> None:
    for tensor in tensors:
        set_history(tensor, node)


def name_node_class(cls: Any, name: str) -> None:
    """Call a generated class what its nodes are called: `type(x.grad_fn).__name__` is looked at.

    The source calls it otherwise, since two operators of a family may name their nodes alike.
    """
    setattr(cls, "__name__", name)  # noqa: B010  # native code assigns no attributes to classes
    setattr(cls, "__qualname__", name)  # noqa: B010


def not_implemented(name: str, reason: str = "") -> NoReturn:
    """Stands for a derivative that does not exist: raises when backward needs it."""
    explanation = f" {reason}" if reason else ""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.{explanation}")


def copy_of(tensor: TensorBase) -> TensorBase:
    """A copy of a tensor that an in-place operator overwrites and its gradient needs. A dual
    tensor's copy has its tangent, although forward mode is off while the operator is recorded."""
    state = current_state()
    kept = state.kept
    if tensor._keyset & FORWARD_AD_BIT:
        state.kept = kept | FORWARD_AD_BIT
    try:
        copy: TensorBase = operators["clone"](tensor)
    finally:
        state.kept = kept
    return copy


def _any_needs_grad(args: tuple[Any, ...]) -> bool:
    for value in args:
        if isinstance(value, TensorBase):
            if needs_grad(value):
                return True
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, TensorBase) and needs_grad(item):
                    return True
    return False


def overwritten(target: TensorBase) -> TensorBase:
    """What a composition that is written to `target` reads in its place: a copy where operators are
    recorded, since gradients may need it.

    The write into a view is one into its base. As after other in-place operators, the gradient of
    the former elements goes to the base, and hooks of the former view do not get it.

    Raises:
        RuntimeError: `target` may not be written to by a recorded operator; see `check_inplace`.
    """
    state = current_state()
    if not state.grad_enabled:
        return target
    if not needs_grad(target):
        copy: TensorBase = operators["clone"](target)
        return copy
    check_inplace(target)
    if target._view_info is None or target._keyset & TRANSFORMS_BIT:
        recorded: TensorBase = operators["clone"](target)
        return recorded
    state.grad_enabled = False
    try:
        former: TensorBase = operators["clone"](target)
    finally:
        state.grad_enabled = True
    start_at_view(former, target)
    return former


@final
class CompositeInplace:
    """The in-place version of a composite operator: compute, then copy."""

    def __init__(self, functional: Operator, positional: int, keywords: tuple[str, ...]) -> None:
        self.functional = functional
        self.name = f"{functional.name}_"
        self.apart: bool = self.name in APART
        # How many arguments, after the first, may be given by position, and what the others are.
        self.positional = positional
        self.keywords = keywords

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        source = target
        if current_state().grad_enabled and (needs_grad(target) or _any_needs_grad(args)):
            source = overwritten(target)
        keywords = dict(zip(self.keywords, args[self.positional :], strict=True))
        if self.apart or target._shared_storage is not None:
            check_operands(target, args, self.name)
        result: TensorBase = self.functional(source, *args[: self.positional], **keywords)
        check_inplace_cast(result.dtype, target.dtype)
        check_inplace_shape(target, result)
        operators["copy_"](target, result)
        return target
