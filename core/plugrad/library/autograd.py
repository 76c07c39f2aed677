"""Makes an operator's Autograd kernel from the backward function of `register_autograd`.

The operator becomes an `autograd.Function` whose forward redispatches below autograd, with the
`jvp` of `register_autograd`. A Function does not look into lists of tensors, so they are flattened
for it and rebuilt afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from plugrad.autograd.function import Function
from plugrad.autograd.function.node import Error
from plugrad.autograd.grad_mode import set_grad_enabled
from plugrad.dispatch import keys
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Swapped
from plugrad.graph.history import check_inplace, collect_next_edges, rebase_history, set_history
from plugrad.library.schemas import (
    is_functional,
    split_keywords,
    tensors_in,
    written_tensors,
)
from plugrad.library.tags import Tag
from plugrad.ops.namespace import TAGS, overload_of
from plugrad.tensor.base import TensorBase, needs_grad


class GradientRule:
    """The functions from `register_autograd`; a kernel reads them at every call."""

    def __init__(
        self,
        backward: Callable[..., Any] | None = None,
        setup_context: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
    ) -> None:
        # One value, so that they are exchanged all at once.
        self.functions = (backward, setup_context, jvp)

    @property
    def backward(self) -> Callable[..., Any] | None:
        return self.functions[0]

    @property
    def setup_context(self) -> Callable[..., Any] | None:
        return self.functions[1]

    @property
    def jvp(self) -> Callable[..., Any] | None:
        return self.functions[2]


class _Layout:
    """How a list of values that contains lists of tensors was flattened.

    Each entry is the number of a list's elements, or None for any other value.
    """

    def __init__(self, values: tuple[Any, ...] | list[Any]) -> None:
        self.lengths = [len(value) if _is_tensor_list(value) else None for value in values]

    def spread(self, values: Any) -> list[Any]:
        flat: list[Any] = []
        for length, value in zip(self.lengths, values, strict=True):
            if length is None:
                flat.append(value)
            else:
                flat.extend(value)
        return flat

    def gather(self, flat: Any) -> list[Any]:
        values: list[Any] = []
        position = 0
        for length in self.lengths:
            if length is None:
                values.append(flat[position])
                position += 1
            else:
                values.append(list(flat[position : position + length]))
                position += length
        return values

    def __str__(self) -> str:
        return ", ".join("*" if size is None else f"list of {size}" for size in self.lengths)


class _Call:
    """The data of one call that passes through the Function beside the operator's arguments."""

    def __init__(self, keyset: int, layout: _Layout, grad_enabled: bool) -> None:
        self.keyset = keyset
        self.grad_enabled = grad_enabled
        self.layout = layout
        self.output_layout: _Layout | None = None
        self.several = False


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        item is None or isinstance(item, TensorBase) for item in value
    )


class AutogradKernel:
    """The kernel of the Autograd key of an operator that does not write.

    It serves forward mode, too, if there is a `jvp`.
    """

    def __init__(self, op: Operator, rule: GradientRule) -> None:
        self.op = op
        self.rule = rule
        overload = op.overload or "default"
        self.function: Any = type(
            f"GeneratedBackwardFor_{op.namespace}_{op.name}_{overload}",
            (Function,),
            {
                "_serves_operator": True,
                "forward": staticmethod(self._forward),
                "backward": staticmethod(self._backward),
                "jvp": staticmethod(self._jvp),
            },
        )

    @property
    def needs_forward_rule(self) -> bool:
        """Whether a dual tensor is an error here, rather than silently treated as its primal."""
        return self.rule.jvp is None

    def __call__(self, keyset: int, *values: Any) -> Any:
        state = current_state()
        recorded = state.grad_enabled and any(map(needs_grad, tensors_in(values)))
        if not recorded and keyset & state.kept & keys.FORWARD_AD_BIT == 0:
            return self.op.redispatch(keyset & keys.AFTER_AUTOGRAD, *values)
        layout = _Layout(values)
        call = _Call(keyset, layout, state.grad_enabled)
        out = self.function.apply(*layout.spread(values), call)
        assert call.output_layout is not None
        gathered = call.output_layout.gather(out)
        return tuple(gathered) if call.several else gathered[0]

    def _forward(self, ctx: Any, *flat: Any) -> tuple[Any, ...]:
        call: _Call = flat[-1]
        values = tuple(call.layout.gather(flat[:-1]))
        below = call.keyset & keys.AFTER_AUTOGRAD
        if current_state().level is None:
            out = self.op.redispatch(below, *values)
        else:
            # Transforms further out may record what this one does not.
            with set_grad_enabled(call.grad_enabled):
                out = self.op.redispatch(below, *values)
        setup_context = self.rule.setup_context
        if setup_context is not None:
            inputs, keywords = split_keywords(self.op.schema, values)
            needed = ctx.needs_input_grad
            ctx.needs_input_grad = tuple(call.layout.gather(needed[:-1]))
            if keywords:
                setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=keywords, output=out)
            else:
                setup_context(ctx=ctx, inputs=inputs, output=out)
            ctx.needs_input_grad = needed
        call.several = isinstance(out, tuple)
        outputs = out if call.several else (out,)
        call.output_layout = _Layout(outputs)
        ctx._library_call = call
        return tuple(call.output_layout.spread(outputs))

    def _jvp(self, ctx: Any, *flat_tangents: Any) -> tuple[Any, ...]:
        assert self.rule.jvp is not None
        call: _Call = ctx._library_call
        layout = call.output_layout
        assert layout is not None
        tangents = call.layout.gather(flat_tangents[:-1])
        found = self.rule.jvp(ctx, *tangents[: positional_count(self.op)])
        given = found if call.several and isinstance(found, tuple) else (found,)
        if len(given) != len(layout.lengths):
            raise RuntimeError(
                f"The jvp function of {self.op.qualified_name} returned an incorrect number of "
                f"tangents (expected {len(layout.lengths)}, one per result: "
                f"{self.op.schema_text}; got {len(given)})"
            )
        spread: list[Any] = []
        for length, value in zip(layout.lengths, given, strict=True):
            if length is None:
                spread.append(value)
            elif value is None:
                spread.extend([None] * length)
            elif not isinstance(value, list | tuple) or len(value) != length:
                got = f"{len(value)} of them" if isinstance(value, list | tuple) else "none"
                raise RuntimeError(
                    f"The jvp function of {self.op.qualified_name} must return a list of {length} "
                    f"tangents for a result that is a list of {length} tensors; got {got}"
                )
            else:
                spread.extend(value)
        return tuple(spread)

    def _backward(self, ctx: Any, *flat_grads: Any) -> tuple[Any, ...]:
        call: _Call = ctx._library_call
        if self.rule.backward is None:
            self._raise_missing()
        assert call.output_layout is not None
        grads = call.output_layout.gather(flat_grads)
        needed = ctx.needs_input_grad
        positional = positional_count(self.op)
        keyword_count = len(self.op.schema.arguments) - positional
        positions = tuple(call.layout.gather(needed[:-1])[:positional])
        with Swapped(ctx, "needs_input_grad", positions):
            found = self.rule.backward(ctx, *grads)
        given = found if isinstance(found, tuple) else (found,)
        if len(given) != positional:
            raise RuntimeError(
                f"The backward function of {self.op.qualified_name} returned an incorrect number "
                f"of gradients (expected {positional}, one per input: "
                f"{self.op.schema_text}; got {len(given)})"
            )
        return (*self._spread_gradients(call, given, keyword_count), None)

    def _spread_gradients(
        self, call: _Call, given: tuple[Any, ...], keyword_count: int
    ) -> list[Any]:
        values = [*given, *[None] * keyword_count]
        for position, (length, value) in enumerate(zip(call.layout.lengths, values, strict=True)):
            if length is None:
                continue
            if value is None:
                values[position] = [None] * length
            elif not isinstance(value, list | tuple) or len(value) != length:
                got = f"{len(value)} of them" if isinstance(value, list | tuple) else "none"
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs: "
                    f"{self.op.schema.arguments[position].name} is a list of {length}, so that its "
                    f"gradient must be a list of {length} gradients; got {got}"
                )
        return call.layout.spread(values)

    def _raise_missing(self) -> NoReturn:
        raise RuntimeError(missing_formula(self.op))


def positional_count(op: Operator) -> int:
    """How many arguments an operator takes by position."""
    return sum(not argument.kwarg_only for argument in op.schema.arguments)


def missing_formula(op: Operator) -> str:
    return (
        f"Trying to backward through {overload_of(op)} but no autograd formula was registered. "
        "Please use register_autograd to add one."
    )


class WritingAutogradKernel:
    """The Autograd kernel of an operator that writes to its arguments: there is no way back.

    What it wrote to gets a grad_fn that raises, where PyTorch leaves the former one, and with it
    wrong gradients.
    """

    needs_forward_rule = True

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: int, *values: Any) -> Any:
        recorded = current_state().grad_enabled and any(map(needs_grad, tensors_in(values)))
        written = written_tensors(self.op.schema, values)
        if recorded and Tag.out in TAGS.get(self.op.qualified_name, ()):
            raise RuntimeError(
                f"{self.op.name}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        if recorded:
            for tensor in written:
                check_inplace(tensor)
        out = self.op.redispatch(keyset & keys.AFTER_AUTOGRAD, *values)
        if recorded:
            node = Error(missing_formula(self.op))
            node._set_next_edges(collect_next_edges([*tensors_in(values)]))
            for tensor in written:
                if tensor.dtype.is_differentiable:
                    rebase_history(tensor, node)
            for result in tensors_in(out if isinstance(out, tuple) else (out,)):
                if not any(result is tensor for tensor in written):
                    set_history(result, node)
        return out


def check_rule(op: Operator, allow_view: bool) -> None:
    """RuntimeError if an operator cannot have a gradient rule."""
    schema = op.schema
    shown = f"{overload_of(op)} with schema {op.namespace}::{op.schema_text}"
    if Tag.out in TAGS.get(op.qualified_name, ()):
        raise RuntimeError(
            "Cannot register autograd formula for operator tagged with Tag.out: "
            f"{overload_of(op)}. Out variants do not support autograd."
        )
    if not is_functional(schema, allow_view=allow_view):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown}. Please create "
            "a functional operator and register an autograd formula for that."
        )
