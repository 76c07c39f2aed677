"""What `Function.apply` does: runs `forward` unrecorded, and connects its outputs to the node."""

from __future__ import annotations

import inspect
import types
from typing import Any, Final

from mypy_extensions import i64

from plugrad.autograd.function import jvp as function_jvp
from plugrad.autograd.function.levels import (
    apply_mapped,
    apply_outside,
    arguments_at,
    check_for_transforms,
    node_class_at_level,
)
from plugrad.autograd.function.node import Error, FunctionNode
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.graph.history import (
    check_inplace,
    collect_next_edges,
    gradient_edge,
    has_grad_fn,
    rebase_history,
    set_creation_meta,
    set_gradient_edge,
)
from plugrad.graph.node import NO_EDGE, Edge
from plugrad.graph.saved_variable import SavedVariable
from plugrad.tensor.base import TensorBase, bump_version, detached, needs_grad
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.levels import VMAP, Level
from plugrad.tensor.views import CREATION_DEFAULT, IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE

LEAF: Final = "a leaf Variable that requires grad has been used in an in-place operation."
SEVERAL_OUTPUTS: Final = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
    "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
    "should either make sure the input is not a view (using .clone() for example) or make your "
    "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
    "inplace that returns a single Tensor and a second one that does the other operations). You "
    "can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
RETURNED_AS_IS: Final = (
    "An input that has been returned as-is as output is being saved for backward. This is not "
    "supported if you override setup_context. You should return and save a view of the input "
    "instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself."
)
NOT_RETURNED: Final = (
    "Some elements marked as dirty during the forward method were not returned as output. The "
    "inputs that are modified inplace must all be outputs of the Function."
)
NOT_AN_INPUT: Final = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
    "mutated should be passed to ctx.mark_dirty()."
)
NOT_A_PURE_VIEW: Final = (
    "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue "
    "if you need to support more."
)
VARIADIC: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def apply_function(function: Any, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function.apply(*args, **kwargs)`, for a subclass of `base`, which is Function."""
    setup_context: Any = function.setup_context
    separate = setup_context is not base.setup_context
    forward: Any = function.forward
    if separate and not _takes_exactly(forward, args, kwargs):
        bound = inspect.signature(forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args = bound.args
        kwargs = bound.kwargs
    if kwargs:
        args = _resolve_keywords(forward, args, kwargs, 0 if separate else 1)
    state = current_state()
    level: Level | None = state.level
    if level is not None and function._serves_operator:
        # The operator itself goes one level further out.
        level = None
    if level is not None:
        check_for_transforms(function, separate)
        if level.kind == VMAP:
            return apply_mapped(function, state, level, args, base)
        args = arguments_at(level, args)
        node_class: Any = node_class_at_level(function)
    else:
        node_class = function._backward_cls
    ctx: FunctionNode = node_class()
    recorded = _note_inputs(ctx, state, args)
    ctx._read_once = _flag(function.clear_saved_tensors_on_access, "clear_saved_tensors_on_access")
    ctx._boxed = _flag(function.boxed_grads_call, "boxed_grads_call")
    forward_pass = function_jvp.begin(state, args) if _any_dual(state, args) else None
    grad_enabled = state.grad_enabled
    state.grad_enabled = False
    mode_keys = state.kept
    state.kept = mode_keys & ~FORWARD_AD_BIT
    trace = state.trace
    entered = False
    raised = True
    try:
        if trace is not None:
            trace.enter_function(ctx, function.__name__, args, recorded)
            entered = True
        if separate:
            if level is None:
                output: Any = forward(*args)
            else:
                state.grad_enabled = grad_enabled
                output = apply_outside(function, state, level, args)
                state.grad_enabled = False
            setup_context(ctx, args, output)
        else:
            output = forward(ctx, *args)
        raised = False
    finally:
        state.grad_enabled = grad_enabled
        state.kept = mode_keys
        if trace is not None and entered:
            trace.leave_function(ctx, raised)
    several = isinstance(output, tuple)
    outputs: tuple[Any, ...] = output if several else (output,)
    given = outputs
    if forward_pass is not None:
        forward_pass.note_marks(ctx)
    kept = _kept_inputs(ctx) if separate else None
    if (
        recorded
        and not several
        and isinstance(output, TensorBase)
        and ctx.dirty_tensors is None
        and ctx.non_differentiable is None
        and output._view_info is None
        and output.dtype.is_differentiable
        and not _is_one_of(output, args)
    ):
        # What nearly all Functions do.
        set_gradient_edge(output, ctx, ctx._add_input_metadata(output))
    else:
        outputs = _tie_outputs(ctx, state, args, outputs, recorded, kept)
    if forward_pass is not None:
        function_jvp.finish(forward_pass, ctx, state, args, given, outputs)
    if ctx.to_save is not None:
        to_save = _expect_tuple(ctx.to_save, "to_save")
        # Before a hook that packs may raise: an output held here refers to `ctx` itself.
        ctx.to_save = None
        if recorded:
            _save(ctx, to_save, outputs)
    ctx.saved_for_forward = None
    return outputs if several else outputs[0]


def _any_dual(state: LocalState, args: tuple[Any, ...]) -> bool:
    """Whether an argument may have a tangent."""
    if state.included & FORWARD_AD_BIT:
        return True
    for value in args:  # noqa: SIM110  # needs no generator
        if isinstance(value, TensorBase) and value._keyset & FORWARD_AD_BIT:
            return True
    return False


def _is_one_of(wanted: object, values: tuple[Any, ...]) -> bool:
    for value in values:  # noqa: SIM110  # needs no generator
        if value is wanted:
            return True
    return False


def _takes_exactly(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether every parameter of `forward` is given by position: nothing is left to bind."""
    if kwargs or not isinstance(forward, types.FunctionType) or hasattr(forward, "__wrapped__"):
        return False
    code = forward.__code__
    return (
        code.co_argcount == len(args)
        and code.co_kwonlyargcount == 0
        and code.co_flags & VARIADIC == 0
    )


def _resolve_keywords(
    forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int
) -> tuple[Any, ...]:
    """All arguments by position; `skipped` leading parameters (`ctx`) are not counted."""
    code: Any = forward.__code__
    names: list[str] = list(code.co_varnames[skipped : code.co_argcount])
    places: dict[int, Any] = {}
    last = len(args) - 1
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        place = names.index(name)
        if place < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
        places[place] = value
        last = max(last, place)
    resolved = list(args)
    for place in range(len(args), last + 1):
        if place not in places:
            raise TypeError(
                f"forward() missing required argument: '{names[place]}' (position {place})"
            )
        resolved.append(places[place])
    return tuple(resolved)


def _note_inputs(ctx: FunctionNode, state: LocalState, args: tuple[Any, ...]) -> bool:
    """Set the attributes of `ctx` about the arguments, and its edges; returns whether it is
    recorded."""
    needed: list[bool] = []
    is_tensor: list[bool] = []
    any_needed = False
    for value in args:
        if isinstance(value, TensorBase):
            is_tensor.append(True)
            if needs_grad(value):
                needed.append(True)
                any_needed = True
                continue
        else:
            is_tensor.append(False)
        needed.append(False)
    ctx._is_tensor = is_tensor
    ctx.needs_input_grad = tuple(needed)
    if not any_needed or not state.grad_enabled:
        return False
    edges: list[Edge] = []
    for index, value in enumerate(args):
        if isinstance(value, TensorBase):
            edges.append(gradient_edge(value) if needed[index] else NO_EDGE)
    ctx._set_next_edges(tuple(edges))
    return True


def _flag(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return value
    raise RuntimeError(f"{name} must be a bool, got {type_name(value)}")


def _expect_tuple(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return value
    raise RuntimeError(
        f"autograd internal error: {name} attribute is expected to be a tuple but is "
        f"{type_name(value)}"
    )


def _kept_inputs(ctx: FunctionNode) -> set[int]:
    """The ids of saved inputs, for `setup_context`, which must not save inputs that are returned as
    they are."""
    found: set[int] = set()
    if ctx.saved_for_forward is not None:
        for tensor in _expect_tuple(ctx.saved_for_forward, "saved_for_forward"):
            if tensor is not None:
                found.add(id(tensor))
    if ctx.to_save is not None:
        for tensor in _expect_tuple(ctx.to_save, "to_save"):
            if tensor is not None:
                found.add(id(tensor))
    return found


def _take_non_differentiable(ctx: FunctionNode) -> set[int]:
    found: set[int] = set()
    if ctx.non_differentiable is not None:
        for tensor in _expect_tuple(ctx.non_differentiable, "non_differentiable"):
            if not isinstance(tensor, TensorBase):
                raise RuntimeError(
                    "mark_non_differentiable only accepts variable arguments, but got "
                    f"{type_name(tensor)}"
                )
            found.add(id(tensor))
        # Keeping an output would be a reference cycle, because its grad_fn is `ctx`.
        ctx.non_differentiable = None
    return found


def _take_dirty(ctx: FunctionNode) -> set[int]:
    """The ids of tensors that were marked dirty; counts the writes."""
    found: set[int] = set()
    if ctx.dirty_tensors is not None:
        for index, tensor in enumerate(_expect_tuple(ctx.dirty_tensors, "dirty_tensors")):
            if not isinstance(tensor, TensorBase):
                raise RuntimeError(
                    f"mark_dirty can only accept variables, but argument {index} is of type "
                    f"{type_name(tensor)}"
                )
            found.add(id(tensor))
            bump_version(tensor)
        ctx.dirty_tensors = None
    return found


def _tie_outputs(
    ctx: FunctionNode,
    state: LocalState,
    args: tuple[Any, ...],
    outputs: tuple[Any, ...],
    recorded: bool,
    kept: set[int] | None,
) -> tuple[Any, ...]:
    """Give each tensor among the outputs its place in the graph; returns what users get."""
    constant = _take_non_differentiable(ctx)
    dirty = _take_dirty(ctx)
    inputs = {id(value) for value in args if isinstance(value, TensorBase)}
    if ctx._is_pure_view and (len(outputs) != 1 or ctx._is_tensor.count(True) != 1):
        raise RuntimeError(NOT_A_PURE_VIEW)
    returned: set[int] = set()
    tied: list[Any] = []
    differentiable_count = 0
    for index, output in enumerate(outputs):
        if not isinstance(output, TensorBase):
            if recorded:
                ctx._add_input_metadata(None)
            tied.append(output)
            continue
        identity = id(output)
        is_input = identity in inputs
        is_modified = identity in dirty
        differentiable = (
            recorded and identity not in constant and bool(output.dtype.is_differentiable)
        )
        as_is = is_input and not is_modified
        if as_is and (differentiable or not needs_grad(output)):
            if kept is not None and identity in kept:
                raise RuntimeError(RETURNED_AS_IS)
            result: TensorBase = _view_as_self(state, output)
        elif differentiable or not needs_grad(output):
            result = output
        else:
            result = _without_gradient(output, is_input)
        if not differentiable:
            if recorded:
                ctx._add_input_metadata(None)
                ctx._note_constant_output(index, output)
        else:
            differentiable_count += 1
            if is_modified:
                _tie_modified(ctx, output, args, len(outputs))
            else:
                set_gradient_edge(result, ctx, ctx._add_input_metadata(result))
        if not (is_input and is_modified):
            # When a pure view is regenerated, its operators replace the Function.
            creation = CREATION_DEFAULT if ctx._is_pure_view else IN_CUSTOM_FUNCTION
            set_creation_meta(result, creation)
        returned.add(identity)
        tied.append(result)
    if differentiable_count > 1:
        for result in tied:
            if isinstance(result, TensorBase):
                set_creation_meta(result, MULTI_OUTPUT_NODE)
    if not dirty <= returned:
        raise RuntimeError(NOT_RETURNED)
    return tuple(tied)


def _tie_modified(ctx: FunctionNode, output: TensorBase, args: tuple[Any, ...], count: int) -> None:
    """An input that was written to: `ctx` becomes its grad_fn."""
    if needs_grad(output) and not has_grad_fn(output):
        raise RuntimeError(LEAF)
    if not _is_one_of(output, args):
        if output._view_info is not None:
            raise RuntimeError(NOT_AN_INPUT)
        warn_at_caller(NOT_AN_INPUT)
    if output._view_info is not None and count > 1:
        raise RuntimeError(SEVERAL_OUTPUTS)
    check_inplace(output)
    meta = output._autograd_meta
    if meta is not None:
        meta.grad = None
    rebase_history(output, ctx, _tensor_number(output, args))


def _tensor_number(tensor: TensorBase, args: tuple[Any, ...]) -> int:
    """Which of the tensors among the arguments this is; the first if it is none of them."""
    number = 0
    for value in args:
        if value is tensor:
            return number
        if isinstance(value, TensorBase):
            number += 1
    return 0


def _without_gradient(output: TensorBase, is_input: bool) -> TensorBase:
    """A tensor that requires grad as an output that carries none."""
    if is_input:
        # Another tensor, for the input's own requires_grad must not change.
        return detached(output)
    meta = output._autograd_meta
    # A view of an input keeps requires_grad, as one that was made under no_grad does.
    if output._view_info is None and meta is not None:
        meta.grad_fn = None
        meta.output_nr = 0
        meta.requires_grad = False
    return output


def _view_as_self(state: LocalState, tensor: Any) -> TensorBase:
    """An input that was returned as it is becomes a view, which can have a history of its own."""
    grad_enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        # The method, so that subclasses see the call.
        result: TensorBase = tensor.view_as(tensor)
    finally:
        state.grad_enabled = grad_enabled
    return result


def _save(ctx: FunctionNode, tensors: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Save after the outputs are tied, so that a saved output is recognised as one."""
    saved: list[SavedVariable | None] = []
    for index, tensor in enumerate(tensors):
        if tensor is None:
            saved.append(None)
        elif isinstance(tensor, TensorBase):
            meta = tensor._autograd_meta
            if meta is not None and meta.grad_fn is not None and _is_one_of(tensor, outputs):
                saved.append(SavedVariable(tensor, i64(meta.output_nr)))
            else:
                saved.append(SavedVariable(tensor))
        else:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is of type "
                f"{type_name(tensor)}"
            )
    ctx._saved = saved


def delayed_error(message: str, tensors: list[Any]) -> tuple[Any, ...]:
    """The tensors again (None stays None), with a grad_fn that raises when it runs."""
    node = Error(message)
    sources: list[TensorBase | None] = list(tensors)
    node._set_next_edges(collect_next_edges(sources))
    made: list[Any] = []
    for tensor in sources:
        if tensor is None:
            node._add_input_metadata(None)
            made.append(None)
        else:
            result = detached(tensor)
            set_gradient_edge(result, node, node._add_input_metadata(result))
            made.append(result)
    return tuple(made)
