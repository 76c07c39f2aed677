"""Names for the tensors that a run meets: inputs, constants, and results of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import kwlist
from sys import getrefcount
from typing import Any

import numpy as np

from plugrad._generated.calls import call_clone, call_detach
from plugrad.device import Device
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT, MATH_BITS
from plugrad.dispatch.operator import Operator
from plugrad.dtype import DType
from plugrad.ops.namespace import find_overload
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.transforms.capture.errors import CaptureError, at_line, user_line
from plugrad.transforms.capture.node import Constant, Ref
from plugrad.transforms.capture.undo import Undo, copied

# Arguments that Python has a spelling for.
PLAIN = (bool, int, float, complex, str, type(None), DType, Device)


# What the code of a graph uses, and what cannot be a name.
RESERVED = frozenset([*kwlist, "plugrad", "ops", "getattr", "float", "complex"])


class Names(Undo):
    """Identifies every tensor by its id, and tensors that share an array with a known one.

    Attributes:
        constants: tensors and other values that are not inputs.
        inputs: the arguments' tensors by name.
    """

    def __init__(self, inputs: list[TensorBase], reserved: Iterable[str]) -> None:
        """`reserved`: names that mean something else in the graph's code."""
        super().__init__()
        self.constants: dict[str, Constant] = {}
        self.inputs: dict[str, TensorBase] = {}
        self._used: set[str] = {*RESERVED, *reserved}
        # By id of tensor and of array; both are kept, so that ids stay theirs.
        self._names: dict[int, str] = {}
        self._tensors: dict[str, TensorBase] = {}
        self._by_array: dict[int, str] = {}
        self._array_of: dict[str, Any] = {}
        self._kept: list[Any] = []
        # Values that autograd follows.
        self._recorded: set[str] = set()
        # The values that may share memory with a value; and memory that depends on inputs.
        self._roots: dict[str, frozenset[str]] = {}
        self._tainted: set[str] = set()
        # Gradients of inputs and constants.
        self._holders: dict[int, str] = {}
        for tensor in inputs:
            self._add_input(tensor)

    def append(self, op: Operator, refs: tuple[Any, ...], args: Any, result: Any) -> None:
        """Record a call of an operator."""
        raise NotImplementedError

    def name_of(self, tensor: TensorBase) -> str:
        """The name of a value, which is a constant if the run has not made it."""
        known = self._known(tensor)
        if known is not None:
            return known
        if id(tensor) not in self.own:
            return self._add_constant(tensor)
        if self.own[id(tensor)]:
            raise CaptureError(
                f"capture(): a tensor of shape {tuple(sizes_of(tensor))} was made inside an "
                "operator and left it, but not as its result, so the graph cannot make "
                f"it{at_line(user_line())}"
            )
        # `.data` of a tensor that is not an input looks like a new one, but shares its memory.
        shared = tensor._shared_storage is not None
        fresh = copied(tensor)
        if shared or getrefcount(tensor._backend_array) > getrefcount(fresh._backend_array):
            return self._add_constant(tensor)
        return self._add_fresh(tensor, fresh)

    def _known(self, tensor: TensorBase) -> str | None:
        """The name of a tensor, or of one that the run made another of without an operator."""
        name = self._names.get(id(tensor))
        if name in self._recorded and id(tensor) in self.own and not needs_grad(tensor):
            del self._names[id(tensor)]  # detach_() has cut it out of the graph
            return self._through(call_detach, "detach", tensor, name)
        if name is not None or id(tensor) not in self.own:
            if name is not None and id(tensor) in self.own:
                self._check_array(name, tensor)
            return name
        name = self._by_array.get(id(tensor._backend_array))
        if name is None or not _is_one_place(self._tensors[name], tensor):
            name = self._with_array(tensor)
        if name is None:
            return None
        other = self._tensors[name]
        if tensor._keyset & FUNCTIONALIZE_BIT and (
            tensor._shared_storage is None or tensor._shared_storage is not other._shared_storage
        ):
            # They have an array in common until one of them is written to.
            return self._through(call_clone, "clone", tensor, name)
        if self._is_same(tensor, other):
            self._name(tensor, name)
            return name
        return self._through(call_detach, "detach", tensor, name)

    def _check_array(self, name: str, tensor: TensorBase) -> None:
        if (
            not tensor._keyset & FUNCTIONALIZE_BIT
            and tensor._backend_array is not self._array_of[name]
        ):
            self._refuse_data(name)

    def note(self, tensor: Any) -> None:
        if not self.inside:
            self._refuse_data(self._names.get(id(tensor), "a tensor"))
        super().note(tensor)

    def _refuse_data(self, name: str) -> None:
        raise CaptureError(
            f"capture(): {name} gets other contents by an assignment to its data, which no "
            f"operator does: write to it with copy_(){at_line(user_line())}"
        )

    def _with_array(self, tensor: TensorBase) -> str | None:
        """The name of a value that has a tensor's array now."""
        shares = False
        for name, other in self._tensors.items():
            if _is_one_place(other, tensor):
                return name
            shares = shares or (
                tensor._shared_storage is not None
                and other._shared_storage is tensor._shared_storage
            )
        if shares or id(tensor._backend_array) in self._by_array:
            raise CaptureError(
                f"capture(): a tensor of shape {tuple(sizes_of(tensor))} shares memory with others "
                f"of the graph, which has no operator for it{at_line(user_line())}"
            )
        return None

    @staticmethod
    def _is_same(tensor: TensorBase, other: TensorBase) -> bool:
        """Whether autograd sees the same in two tensors with one array."""
        if tensor._view_info is not None or other._view_info is not None:
            return not needs_grad(tensor) and not needs_grad(other)
        a, b = tensor._autograd_meta, other._autograd_meta
        first = None if a is None else a.grad_fn
        second = None if b is None else b.grad_fn
        return needs_grad(tensor) == needs_grad(other) and first is second

    def _through(self, call: Any, op: str, tensor: TensorBase, name: str) -> str:
        """Name a tensor that was made without an operator as what an operator would make."""
        values: tuple[Any, ...] = (Ref(name), None) if call is call_clone else (Ref(name),)
        self.append(_overload(op), values, (self._tensors[name], None)[: len(values)], tensor)
        return self._names[id(tensor)]

    def _name(self, tensor: TensorBase, name: str) -> None:
        self._names[id(tensor)] = name
        self._tensors.setdefault(name, tensor)
        self._array_of.setdefault(name, tensor._backend_array)
        self._kept.append((tensor, tensor._backend_array))
        self._by_array.setdefault(id(tensor._backend_array), name)

    def _fresh_name(self, stem: str) -> str:
        """A name that is not used yet."""
        stem = re.sub(r"\W", "_", stem).strip("_") or "value"
        name, number = stem, 0
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        return name

    def _numbered(self, letter: str, number: int) -> str:
        while f"{letter}{number}" in self._used:
            number += 1
        self._used.add(f"{letter}{number}")
        return f"{letter}{number}"

    def _add_input(self, tensor: TensorBase) -> None:
        name = self._numbered("x", len(self.inputs))
        self.inputs[name] = tensor
        self._roots[name] = frozenset([name])
        self._tainted.add(name)
        if id(tensor) not in self._names:
            self._name(tensor, name)
            self._meet_named(tensor, name)

    def _meet_named(self, tensor: TensorBase, name: str) -> None:
        before = self.meet(tensor)
        if before.grad is not None:
            self._holders[id(before.grad)] = name

    def _add_constant(self, tensor: TensorBase) -> str:
        name = self._numbered("c", len(self.constants))
        self.constants[name] = Constant(name, tensor)
        alias = self._by_array.get(id(tensor._backend_array))
        self._roots[name] = frozenset([name]) if alias is None else self._roots[alias]
        self._name(tensor, name)
        self._meet_named(tensor, name)
        return name

    def _add_fresh(self, tensor: TensorBase, value: TensorBase) -> str:
        """A tensor of Python's numbers: each run gets a copy, to write to."""
        constant = self._numbered("c", len(self.constants))
        self.constants[constant] = Constant(constant, value, fresh=True)
        self._roots[constant] = frozenset([constant])
        self._name(value, constant)
        self.append(_overload("clone"), (Ref(constant), None), (value, None), tensor)
        return self._names[id(tensor)]

    def constant_object(self, value: Any) -> Ref:
        """A constant that is not a tensor."""
        for constant in self.constants.values():
            if constant.value is value:
                return Ref(constant.name)
        name = self._numbered("c", len(self.constants))
        self.constants[name] = Constant(name, value)
        return Ref(name)

    def _refs(self, value: Any) -> Any:
        """Arguments with references in the place of tensors."""
        if isinstance(value, TensorBase):
            return Ref(self.name_of(value))
        if type(value) in PLAIN:
            return value
        if isinstance(value, (list, tuple)):
            items = [self._refs(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, np.generic):
            return value.item()
        return self.constant_object(value)


def _is_one_place(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors have one array, with the same meaning."""
    return a._backend_array is b._backend_array and (a._keyset ^ b._keyset) & MATH_BITS == 0


def _overload(name: str) -> Operator:
    return find_overload(f"plugrad::{name}").op
