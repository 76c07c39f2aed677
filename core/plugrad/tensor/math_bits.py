"""Lazy conjugation and negation: tensors with an array that has not been conjugated or negated yet.

`x.conj()` shares memory with `x`; a bit of its key set, `Conjugate`, marks it as the conjugate. The
imaginary part of such a tensor has the bit `Negative`. Arrays do not have these bits, so two keys
between autograd and the kernels resolve them:

    a view has the bits of its source
    any other operator gets resolved tensors: computed, in new memory
    a write to a tensor with bits goes to such a copy, and from there to the tensor

Programs without such tensors never use this code: their key sets lack the bits.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.kernel_hooks import set_math_bits
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.memory_format import preserve_format
from plugrad.tensor.base import TensorBase, detached, make_tensor
from plugrad.tensor.levels import Wrapped

_DENSE: Final[i64] = keys.BACKEND_MASK | keys.DENSE_BIT
_PREFIXES: Final = ("empty", "new_")


def math_bits(tensor: TensorBase) -> i64:
    """The bits of an ordinary tensor, or of the one that a level's tensor wraps."""
    while tensor._keyset & keys.TRANSFORMS_BIT:
        wrapped: Wrapped = tensor._backend_array
        tensor = wrapped.value
    return tensor._keyset & keys.MATH_BITS


def is_conj(tensor: TensorBase) -> bool:
    """Whether a tensor's elements are the conjugates of those in its memory."""
    return math_bits(tensor) & keys.CONJUGATE_BIT != 0


def is_neg(tensor: TensorBase) -> bool:
    """Whether a tensor's elements are those in its memory, negated."""
    return math_bits(tensor) & keys.NEGATIVE_BIT != 0


def as_stored(tensor: TensorBase) -> TensorBase:
    """The elements as they are in a tensor's memory, outside the graph."""
    stored = detached(tensor)
    stored._keyset = stored._keyset & ~keys.MATH_BITS
    return stored


def resolved(tensor: TensorBase) -> TensorBase:
    """The tensor itself if it has no bits; else one with the same elements in memory of its own,
    below autograd."""
    bits: i64 = tensor._keyset & keys.MATH_BITS
    if bits == 0:
        return tensor
    return _applied(_without_bits(tensor), bits)


def _without_bits(tensor: TensorBase) -> TensorBase:
    """A tensor around the same array, to be read at once: that they share it is not recorded."""
    keyset: i64 = tensor._keyset & ~(keys.MATH_BITS | keys.FORWARD_AD_BIT)
    return make_tensor(tensor._backend_array, tensor.dtype, tensor.device, keyset)


def toggled(tensor: TensorBase, bit: i64) -> TensorBase:
    """A view of a tensor with one of its bits changed, below autograd."""
    view = detached(tensor)
    view._keyset = view._keyset ^ bit
    return view


def _applied(tensor: TensorBase, bits: i64) -> TensorBase:
    """A tensor without bits, conjugated and negated according to `bits`."""
    if bits & keys.CONJUGATE_BIT:
        tensor = _computed("plugrad::conj_physical", tensor)
    if bits & keys.NEGATIVE_BIT:
        tensor = _computed("plugrad::neg", tensor)
    return tensor


def _computed(name: str, tensor: TensorBase) -> TensorBase:
    op = find_operator(name)
    assert op is not None
    below: i64 = tensor._keyset & _DENSE
    state = current_state()
    result: TensorBase
    if state.trace is not None:
        result = state.trace.dispatch("redispatch", op, below, (tensor,))
    else:
        result = op.lookup(below)(below, tensor)
    return result


def _write_back(target: TensorBase, result: TensorBase) -> None:
    """Make `result` the elements of a tensor with bits."""
    op = find_operator("plugrad::copy_")
    assert op is not None
    stored = _applied(result, target._keyset & keys.MATH_BITS)
    below: i64 = target._keyset & _DENSE
    op.lookup(below)(below, target, stored, False)


def _go_on(state: LocalState, op: Operator, below: i64, args: tuple[Any, ...]) -> Any:
    if state.trace is not None:
        return state.trace.dispatch("redispatch", op, below, args)
    return op.lookup_dense(below)(below, *args)


@final
class MathBitsKernel:
    """The kernel at `Conjugate` and `Negative` of an operator that computes elements."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.implicit: Any = op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD)
        self.copies: bool = op.qualified_name == "plugrad::clone"
        self.moves: bool = op.qualified_name == "plugrad::_to_device"
        self.written: list[bool] = []
        for argument in op.schema.arguments:
            alias = argument.type.alias
            self.written.append(alias is not None and alias.is_write)

    def __call__(self, keyset: i64, *args: Any) -> Any:
        below = keyset & keys.AFTER_MATH_BITS
        state = current_state()
        if self.implicit is not None and self.op.lookup_dense(below) is self.implicit:
            # Composed of operators that come here themselves.
            return _go_on(state, self.op, below, args)
        if self.copies and (args[1] is None or args[1] is preserve_format):
            return resolved(args[0])
        if self.moves:
            # The other device may be the one that can compute.
            source: TensorBase = args[0]
            moved = _go_on(state, self.op, below, (_without_bits(source), *args[1:]))
            return _applied(moved, source._keyset & keys.MATH_BITS)
        targets: list[TensorBase] = []
        copies: list[TensorBase] = []
        given: list[Any] = []
        for position, value in enumerate(args):
            if isinstance(value, TensorBase):
                found: Any = resolved(value)
                if found is not value and self.written[position]:
                    targets.append(value)
                    copies.append(found)
                given.append(found)
            elif isinstance(value, (list, tuple)):
                given.append(self._resolved_items(position, value, targets, copies))
            else:
                given.append(value)
        out = _go_on(state, self.op, below, tuple(given))
        if not targets:
            return out
        for target, copy in zip(targets, copies, strict=True):
            _write_back(target, copy)
        return _replaced(out, copies, targets)

    def _resolved_items(
        self, position: int, values: Any, targets: list[TensorBase], copies: list[TensorBase]
    ) -> Any:
        items: list[Any] = []
        changed = False
        for item in values:
            found: Any = item
            if isinstance(item, TensorBase):
                found = resolved(item)
                if found is not item:
                    changed = True
                    if self.written[position]:
                        targets.append(item)
                        copies.append(found)
            items.append(found)
        if not changed:
            return values
        return items if isinstance(values, list) else tuple(items)


def _replaced(out: Any, copies: list[TensorBase], targets: list[TensorBase]) -> Any:
    """Results, with targets in place of their copies."""
    if isinstance(out, TensorBase):
        for copy, target in zip(copies, targets, strict=True):
            if out is copy:
                return target
        return out
    if isinstance(out, list):
        return [_replaced(item, copies, targets) for item in out]
    if type(out) is tuple:
        return tuple([_replaced(item, copies, targets) for item in out])
    return out


@final
class PassingKernel:
    """The kernel of an operator that reads no elements, or replaces a tensor's elements."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return _go_on(current_state(), self.op, keyset & keys.AFTER_MATH_BITS, args)


@final
class BitViewKernel:
    """The kernel of a view operator: its result has the bits of its input."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.implicit: Any = op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD)
        self.part: str = ""
        if op.qualified_name in ("plugrad::real", "plugrad::imag"):
            self.part = op.name
        self.as_real: bool = op.qualified_name == "plugrad::view_as_real"
        self.as_dtype: bool = op.qualified_name == "plugrad::_view_dtype"

    def __call__(self, keyset: i64, source: TensorBase, *args: Any) -> Any:
        below = keyset & keys.AFTER_MATH_BITS
        state = current_state()
        if self.implicit is not None and self.op.lookup_dense(below) is self.implicit:
            return _go_on(state, self.op, below, (source, *args))
        bits: i64 = source._keyset & keys.MATH_BITS
        if self.as_real and bits & keys.CONJUGATE_BIT:
            raise RuntimeError(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the "
                "conjugate tensor so you can view it as real, use self.resolve_conj(); however, "
                "be warned that the resulting tensor will NOT alias the original."
            )
        if self.as_dtype and bits and args[0] is not source.dtype:
            kind = "conjugate view tensors"
            if not bits & keys.CONJUGATE_BIT:
                kind = "tensors with negative bit set"
            raise RuntimeError(
                f"plugrad.Tensor.view is not supported for {kind} when converting to a different "
                "dtype."
            )
        if self.part and source.dtype.is_complex:
            if bits & keys.CONJUGATE_BIT:
                bits = bits ^ keys.CONJUGATE_BIT
                if self.part == "imag":
                    bits = bits ^ keys.NEGATIVE_BIT
            source = as_stored(source)
        out = _go_on(state, self.op, below, (source, *args))
        if isinstance(out, TensorBase):
            out._keyset = (out._keyset & ~keys.MATH_BITS) | bits
        else:
            for item in out:
                view: TensorBase = item
                view._keyset = (view._keyset & ~keys.MATH_BITS) | bits
        return out


def _looks_at_no_element(op: Operator) -> bool:
    return op.namespace == "plugrad" and (
        op.structure == "inplace_view"
        or op.name in ("_conj", "_neg_view")
        or op.name.endswith("_like")
        or op.name.startswith(_PREFIXES)
    )


def _make_math_bits(op: Operator) -> Any:
    if _looks_at_no_element(op):
        return PassingKernel(op)
    if op.schema.is_view and not op.schema.mutates:
        return BitViewKernel(op)
    return MathBitsKernel(op)


set_math_bits(_make_math_bits)
