"""Stores what a graph was captured for, and checks whether a call matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plugrad.dispatch.autocast import autocast_in_force
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.transforms.capture.errors import GuardError
from plugrad.transforms.capture.node import Input, meta_of
from plugrad.transforms.capture.recorder import current_mode
from plugrad.transforms.capture.trees import Tree, flatten, paths

MODES = {"grad": "grad mode", "no_grad": "no_grad", "inference": "inference mode"}


@dataclass(frozen=True)
class Guards:
    """The properties of the example that calls of a graph must share.

    Attributes:
        tree: how the arguments, `(args, kwargs)`, are nested.
        leaves: the leaves that are not tensors; None in place of tensors.
        autocast: the device types for which it is on, and the dtypes.
        requires_grad: whether it matters which inputs require grad, because there was a backward
            pass or an `autograd.Function`.
        has_grad: whether there was a gradient, for inputs and constants if the graph reads or sets
            it.
    """

    tree: Tree
    leaves: tuple[Any, ...]
    inputs: tuple[Input, ...]
    mode: str
    autocast: dict[str, DType]
    requires_grad: bool
    has_grad: dict[str, bool]

    def check(self, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of a call's arguments; GuardError if the graph is not for them."""
        leaves, tree = flatten((args, kwargs), sort=True)
        if tree != self.tree:
            raise _failed("the arguments", str(self.tree), str(tree))
        mode = current_mode()
        if mode != self.mode:
            raise _failed("the mode", MODES[self.mode], MODES[mode])
        autocast = dict(autocast_in_force(current_state()))
        if autocast != self.autocast:
            raise _failed("autocast", _autocast(self.autocast), _autocast(autocast))
        tensors = {each.position: each for each in self.inputs}
        names = paths(self.tree, "")
        for position, leaf in enumerate(leaves):
            if position not in tensors:
                expected = self.leaves[position]
                where = f"the argument {_argument(names[position], self.tree)}"
                if isinstance(leaf, TensorBase):
                    raise _failed(where, repr(expected), "a tensor")
                if not _equal(leaf, expected):
                    raise _failed(where, repr(expected), repr(leaf))
        for each in self.inputs:
            _check_input(each, leaves[each.position])
            if self.requires_grad and needs_grad(leaves[each.position]) != each.requires_grad:
                raise _failed(
                    f"requires_grad of {each.name}",
                    str(each.requires_grad),
                    str(not each.requires_grad),
                )
        self._check_same(leaves)
        return leaves

    def _check_same(self, leaves: list[Any]) -> None:
        """Those that were one tensor are, and others are not."""
        first: dict[int, str] = {}
        for each in self.inputs:
            found = first.setdefault(id(leaves[each.position]), each.name)
            expected = each.same_as or each.name
            if found != expected:
                raise _failed(each.name, _which(expected, each.name), _which(found, each.name))

    def check_gradients(self, values: dict[str, Any]) -> None:
        """GuardError if a tensor has a gradient that had none, or the other way round."""
        for name, expected in self.has_grad.items():
            found = values[name].grad is not None
            if found != expected:
                texts = ("None", "a tensor")
                raise _failed(f"{name}.grad", texts[expected], texts[found])

    def __iter__(self) -> Iterator[str]:
        """Each guard in words."""
        yield f"arguments: {self.tree}"
        yield f"mode: {MODES[self.mode]}"
        if self.autocast:
            yield f"autocast: {_autocast(self.autocast)}"
        for each in self.inputs:
            text = f"{each.name}: {each.meta}"
            if each.same_as:
                text += f", the same tensor as {each.same_as}"
            if self.requires_grad:
                text += f", requires_grad={each.requires_grad}"
            yield text
        tensors = {each.position for each in self.inputs}
        for position, (path, leaf) in enumerate(
            zip(paths(self.tree, ""), self.leaves, strict=True)
        ):
            if position not in tensors:
                yield f"{_argument(path, self.tree)} == {leaf!r}"
        for name, expected in self.has_grad.items():
            yield f"{name}.grad is {'not ' if expected else ''}None"


def _check_input(expected: Input, leaf: Any) -> None:
    name = expected.name
    if not isinstance(leaf, TensorBase):
        raise _failed(name, "a tensor", type(leaf).__name__)
    found = meta_of(leaf)
    for field, want, have in zip(found._fields, expected.meta, found, strict=True):
        if want != have:
            raise _failed(f"the {field} of {name}", str(want), str(have))


def _failed(what: str, expected: str, found: str) -> GuardError:
    return GuardError(
        f"the graph was captured for other arguments: expected {what} to be {expected}, found "
        f"{found}; capture the function again"
    )


def _autocast(enabled: dict[str, DType]) -> str:
    return ", ".join(f"{dtype} on {device}" for device, dtype in enabled.items()) or "off"


def _which(name: str, own: str) -> str:
    return "a tensor of its own" if name == own else f"the same tensor as {name}"


def _argument(path: str, tree: Tree) -> str:
    """`[0][1]['w']`, a path into `(args, kwargs)`, as `args[1]['w']`."""
    return f"args{path[3:]}" if path.startswith("[0]") else f"kwargs{path[3:]}"


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False
