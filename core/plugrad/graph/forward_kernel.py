"""The kernel for `ForwardAD`: an operator on dual tensors computes tangents beside its results.

    y = a * b    ForwardAD      collects the tangents of a and b; forward mode is off from here on
                 Autograd ...   the operator as usual, recorded if gradients are needed
                 rule           the tangent of y, by operators that are recorded as well

One kernel serves all operators. It is made when an operator first meets a dual tensor.

The tangent of a view is a view of the tangent. So a write to a dual tensor writes to its tangent,
and its views see that. A write to a view gives its base a tangent if it has none, and the view's
tangent is a view of that; other views of the base find their tangents there when they need them.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

from mypy_extensions import i32, i64

from plugrad.dispatch import keys
from plugrad.dispatch.kernel_hooks import set_forward
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import MISSING_RULE, Operator
from plugrad.dtype import FLOATING, DType
from plugrad.graph.dual_tensors import (
    find_tangent,
    lay_out,
    replayed,
    shares_tangent,
    value_of,
)
from plugrad.graph.forward_rule import ForwardRule
from plugrad.graph.history import gradient_edge
from plugrad.graph.saved_variable import SavedVariable
from plugrad.graph.support import operators
from plugrad.memory_format import contiguous_format
from plugrad.tensor.base import TensorBase, detached, materialize_meta, needs_grad, sizes_of
from plugrad.tensor.dual import (
    ForwardLevel,
    attach_tangent,
    notice_views,
    own_tangent,
)
from plugrad.tensor.views import PRIMAL_ONLY, ViewInfo


@final
class ForwardKernel:
    """The kernel of one operator."""

    def __init__(self, op: Operator, rule: ForwardRule) -> None:
        self.op = op
        self.rule = rule
        self.positions = rule.positions
        self.inplace: bool = op.schema.is_inplace
        self.is_view: bool = op.schema.is_view

    def __call__(self, keyset: i64, *args: Any) -> Any:
        state = current_state()
        below = keyset & keys.AFTER_FORWARD_AD
        tangents: list[Any] = []
        level: ForwardLevel | None = None
        exact = True
        for position in self.positions:
            value: Any = args[position]
            tangent: Any = None
            if isinstance(value, TensorBase):
                found = find_tangent(value)
                if found is not None:
                    level = found.level
                    tangent = found.value
                    if found.value.dtype is not value.dtype:
                        exact = False
            elif isinstance(value, (list, tuple)):
                several: list[Any] = []
                for item in value:
                    found = find_tangent(item) if isinstance(item, TensorBase) else None
                    if found is None:
                        several.append(None)
                    else:
                        level = found.level
                        several.append(found.value)
                        if found.value.dtype is not item.dtype:
                            exact = False
                tangent = several
            tangents.append(tangent)
        if level is None:
            return self._go_on(state, below, args)
        kept = state.kept
        state.kept = kept & ~keys.FORWARD_AD_BIT
        try:
            if self.inplace:
                written: Any = self._write(state, below, args, tangents, level, exact)
                if self.rule.saved:
                    self._give_saved(written, level)
                return written
            if self.is_view:
                lay_out(args[0])
                tangents[0] = value_of(args[0])
            out: Any = self._go_on(state, below, args)
            results: Any
            if state.grad_enabled and _is_recorded(args, tangents):
                results = self.rule.tangents(_primals(args), tangents, _primal_results(out))
            else:
                results = self.rule.tangents(args, tangents, out)
            if isinstance(out, TensorBase):
                if isinstance(results, (tuple, list)):
                    results = results[0]
                self._give(out, results, args, tangents, level, exact)
            elif isinstance(results, (tuple, list)):
                for item, result in zip(out, results, strict=False):
                    self._give(item, result, args, tangents, level, exact)
            else:
                # The others carry no gradient, either.
                self._give(out[0], results, args, tangents, level, exact)
            if self.rule.saved:
                self._give_saved(out, level)
            return out
        finally:
            state.kept = kept

    def _go_on(self, state: LocalState, below: i64, args: tuple[Any, ...]) -> Any:
        """The operator itself."""
        if state.trace is not None:
            return state.trace.dispatch("redispatch", self.op, below, args)
        return self.op.lookup_forward(below)(below, *args)

    def _give(
        self,
        out: Any,
        value: TensorBase | None,
        args: tuple[Any, ...],
        tangents: list[Any],
        level: ForwardLevel,
        exact: bool,
    ) -> None:
        """Make a result a dual tensor; None is zero."""
        if not isinstance(out, TensorBase) or out.dtype.category < FLOATING:
            return
        if value is None:
            value = operators["zeros_like"](out)
        elif not self.is_view:
            if exact and value.dtype is not out.dtype:
                value = cast(value, out.dtype)
            if sizes_of(value) != sizes_of(out):
                value = operators["clone"](_expanded(value, out), memory_format=contiguous_format)
            elif (
                value._shared_storage is not None
                or _is_among(value, tangents)
                or _is_among(value, args)
            ):
                # Whoever writes to `out` must not write to anything else's tangent.
                value = operators["clone"](value)
        attach_tangent(out, value, level)

    def _give_saved(self, out: Any, level: ForwardLevel) -> None:
        """Give the results that the node has saved the tangents which they have only now."""
        outputs: Any = (out,) if isinstance(out, TensorBase) else out
        for name, number in self.rule.saved:
            output: TensorBase = outputs[number]
            meta = output._autograd_meta
            tangent = own_tangent(output)
            if meta is None or meta.grad_fn is None or tangent is None:
                continue
            saved: Any = getattr(meta.grad_fn, name, None)
            if isinstance(saved, SavedVariable):
                saved.give_tangent(output, tangent)

    def _write(
        self,
        state: LocalState,
        below: i64,
        args: tuple[Any, ...],
        tangents: list[Any],
        level: ForwardLevel,
        exact: bool,
    ) -> Any:
        """An operator in place: write to the tangent as well."""
        rule = self.rule
        target: TensorBase = args[0]
        own: TensorBase | None = None
        if rule.positions and rule.positions[0] == 0:
            own = tangents[0]
        else:
            found = find_tangent(target)
            if found is not None:
                own = found.value
        if self.op.structure == "inplace_view":
            # No element is written; the tangent is changed as the tensor is.
            lay_out(target)
            out = self._go_on(state, below, args)
            self.op.call((value_of(target), *args[1:]))
            return out
        if rule.in_place:
            if own is None:
                own = _zeros(_first(tangents), target, target.dtype)
                tangents[0] = own
            out = self._go_on(state, below, args)
            rule.tangents(args, tangents, out)
            if find_tangent(target) is None:
                _set_written(state, target, own, level, exact)
            return out
        before = args
        for number, needed in enumerate(rule.needs_self):
            if needed and tangents[number] is not None:
                copy = operators["clone"](target)
                before = tuple([copy if value is target else value for value in args])
                break
        if own is not None and state.grad_enabled and tangents[0] is own:
            # The rule's own gradients may need what is about to be overwritten.
            tangents[0] = operators["clone"](own)
        out = self._go_on(state, below, args)
        value: Any
        if state.grad_enabled and _is_recorded(args, tangents):
            value = rule.tangents(_primals(before), tangents, _primal_results(out))
        else:
            value = rule.tangents(before, tangents, out)
        if isinstance(value, (tuple, list)):
            value = value[0]
        if target.dtype.category < FLOATING:
            return out
        if own is not None:
            if value is None:
                operators["zero_"](own)
            elif value is not own:
                operators["copy_"](own, value)
        else:
            if value is None:
                value = _zeros(_first(tangents), target, target.dtype)
            _set_written(state, target, value, level, exact)
        return out


def _is_recorded(args: tuple[Any, ...], tangents: list[Any]) -> bool:
    """Whether the operators of a rule are: then they save its tensors, which must be no dual ones,
    for a tangent and its gradients depend on primals alone."""
    for values in (args, tangents):
        for value in values:
            if isinstance(value, TensorBase):
                if needs_grad(value):
                    return True
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, TensorBase) and needs_grad(item):
                        return True
    return False


def _primals(values: Any) -> tuple[Any, ...]:
    """Arguments with the primals of dual tensors in their place."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            found.append(_primal(value) if value._keyset & keys.FORWARD_AD_BIT else value)
        elif isinstance(value, (list, tuple)):
            # Kernels take sizes as tuples, tensors as lists.
            inside = _primals(value)
            found.append(inside if isinstance(value, tuple) else list(inside))
        else:
            found.append(value)
    return tuple(found)


def _primal_results(out: Any) -> Any:
    """Results, which are about to become dual tensors, as primals."""
    if isinstance(out, TensorBase):
        return _primal(out)
    return [_primal(item) if isinstance(item, TensorBase) else item for item in out]


def _primal(tensor: TensorBase) -> TensorBase:
    """A tensor without a tangent at the same place in the graph; the write count is shared."""
    made = detached(tensor)
    edge = gradient_edge(tensor)
    if edge.function is None:
        return made
    meta = materialize_meta(made)
    own = tensor._autograd_meta
    if own is not None and own.grad_fn is None:
        meta.requires_grad = True
        meta.accumulator = own.accumulator
    else:
        meta.grad_fn = edge.function
        meta.output_nr = i32(edge.input_nr)
    return made


def _set_written(
    state: LocalState, target: TensorBase, value: TensorBase, level: ForwardLevel, exact: bool
) -> None:
    """Give a tangent to a tensor that had none and was written to; its base gets one, too."""
    if exact and value.dtype is not target.dtype:
        value = cast(value, target.dtype)
    view = target._view_info
    storage = target._shared_storage
    if view is not None and shares_tangent(view):
        base = view.base
        whole = _zeros(value, base, value.dtype)
        attach_tangent(base, whole, level)
        lay_out(base)
        part = replayed(view, value_of(base))
        operators["copy_"](part, value)
        attach_tangent(target, part, level)
        notice_views(state, level)
        return
    if view is not None:
        _refuse_part_of_primal(view)
    own = _zeros(value, target, value.dtype)
    operators["copy_"](own, value)
    attach_tangent(target, own, level)
    if storage is not None and storage.has_views:
        notice_views(state, level)


def give_tangent(
    state: LocalState,
    tensor: TensorBase,
    value: TensorBase,
    level: ForwardLevel,
    written: bool,
) -> None:
    """Make a tensor a dual one, with `value` itself if it has the tensor's memory layout.

    Args:
        written: whether the tensor existed before and has been written to.
    """
    if written:
        _set_written(state, tensor, value, level, False)
        return
    attach_tangent(tensor, value, level)
    lay_out(tensor)


def cast(value: TensorBase, dtype: DType) -> TensorBase:
    """A tangent in another dtype; a complex one's real part, if that is real."""
    if value.dtype.is_complex and not dtype.is_complex:
        value = operators["real"](value)
    result: TensorBase = operators["_to_copy"](value, dtype)
    return result


def _first(tangents: list[Any]) -> TensorBase:
    """The last tangent that is not None."""
    found: TensorBase | None = None
    for value in tangents:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                found = item
    assert found is not None
    return found


def _zeros(value: TensorBase, like: TensorBase, dtype: DType) -> TensorBase:
    """Zeros of a tensor's shape to which a tangent can be written: batched if the tangent is."""
    zeros: TensorBase = operators["new_zeros"](value, sizes_of(like), dtype=dtype)
    return zeros


def _expanded(value: TensorBase, like: TensorBase) -> TensorBase:
    expanded: TensorBase = operators["expand"](value, sizes_of(like))
    return expanded


def _is_among(wanted: TensorBase, values: Any) -> bool:
    for value in values:
        if value is wanted:
            return True
        if isinstance(value, (list, tuple)):
            for item in value:
                if item is wanted:
                    return True
    return False


def _refuse_part_of_primal(view: ViewInfo) -> None:
    """RuntimeError if the write is to a view of an unpacked primal, which cannot be identified."""
    if view.last.position != PRIMAL_ONLY:
        raise RuntimeError(
            "a dual tensor is being written to a view of the primal that unpack_dual() returned; "
            "write to a clone of the primal instead"
        )


@final
class MissingRule:
    """The kernel of an operator that is differentiable but has no rule: an error, not silence."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: i64, *args: Any) -> Any:
        for value in args:
            if isinstance(value, TensorBase):
                self._refuse(value)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, TensorBase):
                        self._refuse(item)
        state = current_state()
        below = keyset & keys.AFTER_FORWARD_AD
        if state.trace is not None:
            return state.trace.dispatch("redispatch", self.op, below, args)
        return self.op.lookup_forward(below)(below, *args)

    def _refuse(self, tensor: TensorBase) -> None:
        if find_tangent(tensor) is not None:
            raise_missing(self.op)


def raise_missing(op: Operator) -> NoReturn:
    if op.namespace == "plugrad":
        raise NotImplementedError(
            f"Trying to use forward AD with plugrad::{op.name} that does not support it."
        )
    raise NotImplementedError(
        f"Trying to use forward AD with {op.namespace}::{op.name} that does not support it because "
        f"it has not been implemented yet. Give {op.qualified_name} a rule: `forward:` in its YAML "
        "entry, `jvp=` of register_autograd, or an Autograd kernel that calls an autograd.Function "
        "with a `jvp`; or make it of other operators (CompositeImplicitAutograd)."
    )


@final
class _Rules:
    """Where the rules of plugrad's own operators are, which are loaded when one is requested."""

    def __init__(self) -> None:
        self.loaded: bool = False

    def load(self) -> None:
        if not self.loaded:
            import importlib

            importlib.import_module("plugrad._generated.forward_rules")
            self.loaded = True


_rules: Final = _Rules()


def _make_kernel(op: Operator) -> Any:
    if op.namespace == "plugrad":
        _rules.load()
    rule = op.forward_rule
    if isinstance(rule, ForwardRule):
        return ForwardKernel(op, rule)
    gradient: Any = op.kernel_for(keys.AUTOGRAD_ALIAS)
    if gradient is None:
        composite = op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None
        misses = op.differentiable and not composite
    else:
        # A user's kernel may have its own rule, as an `autograd.Function` with a `jvp`.
        misses = getattr(gradient, "needs_forward_rule", rule is MISSING_RULE)
    return MissingRule(op) if misses else None


set_forward(_make_kernel)
