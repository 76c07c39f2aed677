"""A level that maps over a batch: a call is done for all elements at once, by a rule, by the
operator's decomposition, or in a loop."""

from __future__ import annotations

from typing import Any, NoReturn, final

from plugrad.dispatch import keys
from plugrad.dispatch.adapters import BelowAutograd
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.levels.arguments import like, tensors_of, values_at
from plugrad.levels.loop import call_in_loop
from plugrad.levels.randomness import call_random, draws
from plugrad.ops.batching import VmapInfo, rule_of
from plugrad.return_types import result_type_of
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.promotion import check_inplace_cast
from plugrad.tensor.levels import (
    Level,
    Wrapped,
    make_level_tensor,
    step_in,
    step_out,
)


def batch_dim_of(value: Any, level: Level) -> Any:
    """The dimension of an argument that a level maps over; None for none, a list for a list."""
    if isinstance(value, TensorBase):
        if value._keyset & keys.TRANSFORMS_BIT == 0:
            return None
        wrapped: Wrapped = value._backend_array
        return wrapped.batch_dim if wrapped.level is level and wrapped.batch_dim >= 0 else None
    if isinstance(value, (list, tuple)) and len(tensors_of((value,))) > 0:
        return [batch_dim_of(item, level) for item in value]
    return None


def any_batched(in_dims: tuple[Any, ...]) -> bool:
    """Whether any argument has a dimension that is mapped over."""
    for dim in in_dims:
        if isinstance(dim, list):
            for item in dim:
                if item is not None:
                    return True
        elif dim is not None:
            return True
    return False


@final
class BatchedCall:
    """One operator at levels that map."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.rule: Any = rule_of(op)
        self.random: bool = draws(op)
        self.mutates: bool = op.schema.mutates
        self.implicit: Any = op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD)
        explicit: Any = op.kernel_for(keys.COMPOSITE_EXPLICIT_AUTOGRAD)
        # What custom operators have there may look at elements.
        self.explicit: Any = explicit.function if isinstance(explicit, BelowAutograd) else None
        self.functional: Operator | None = None
        if op.schema.is_inplace:
            name = f"{op.namespace}::{op.name[:-1]}"
            self.functional = find_operator(f"{name}.{op.overload}" if op.overload else name)

    def call(self, state: LocalState, level: Level, args: tuple[Any, ...]) -> Any:
        """Do a call for all elements of the level's batch."""
        in_dims = tuple([batch_dim_of(value, level) for value in args])
        if not any_batched(in_dims):
            return self._call_unbatched(state, level, args)
        if self.mutates:
            return self._write(state, level, in_dims, args)
        if self.rule is not None:
            found = self._call_rule(state, level, in_dims, args)
            if found is not NotImplemented:
                return found
        if self.implicit is not None:
            return self.implicit(0, *args)
        if self.explicit is not None:
            return self.explicit(*args)
        if self.op.schema.is_view:
            self._refuse_view()
        return call_in_loop(self.op, state, level, in_dims, args)

    def _call_unbatched(self, state: LocalState, level: Level, args: tuple[Any, ...]) -> Any:
        """No argument is mapped over: the same for all elements, unless it is random."""
        if self.rule is None and self.implicit is not None:
            # Its parts may be random.
            return self.implicit(0, *args)
        if self.random:
            return call_random(self.op, self.rule, state, level, values_at(args, level))
        stepped = step_out(state, level)
        try:
            return self.op.call(values_at(args, level))
        finally:
            step_in(state, stepped)

    def _call_rule(
        self, state: LocalState, level: Level, in_dims: tuple[Any, ...], args: tuple[Any, ...]
    ) -> Any:
        """What the rule gives; NotImplemented if it leaves these arguments to the parts."""
        info = VmapInfo(level.batch_size, level.randomness)
        values = values_at(args, level)
        stepped = step_out(state, level)
        try:
            found: Any = self.rule(info, in_dims, *values)
        finally:
            step_in(state, stepped)
        if found is NotImplemented:
            return found
        out, out_dims = found
        return wrap_batched(self.op, level, out, out_dims)

    def _write(
        self, state: LocalState, level: Level, in_dims: tuple[Any, ...], args: tuple[Any, ...]
    ) -> Any:
        """A call in place: the functional operator's result is copied into the target."""
        op = self.op
        if in_dims[0] is None or isinstance(in_dims[0], list):
            _refuse_write(op, in_dims)
        target: TensorBase = args[0]
        if op.structure == "inplace_view":
            return self._change_geometry(level, args)
        if self.rule is not None:
            self._call_rule(state, level, in_dims, args)
            return target
        if self.implicit is not None:
            return self.implicit(0, *args)
        if self.functional is None:
            call_in_loop(op, state, level, in_dims, args)
            return target
        result: TensorBase = self.functional.call(args)
        check_inplace_cast(result.dtype, target.dtype)
        if sizes_of(result) != sizes_of(target):
            shape = broadcast_shapes(sizes_of(result), sizes_of(target))
            if shape != sizes_of(target):
                raise RuntimeError(
                    f"output with shape {list(sizes_of(target))} doesn't match the broadcast shape "
                    f"{list(shape)}"
                )
        copy: Any = find_operator("plugrad::copy_")
        copy.call((target, result, False))
        return target

    def _change_geometry(self, level: Level, args: tuple[Any, ...]) -> TensorBase:
        """`t_` and the like: the tensor becomes what the view operator gives."""
        target: TensorBase = args[0]
        assert self.functional is not None
        view: TensorBase = self.functional.call(args)
        target._backend_array = view._backend_array
        target._known_sizes = None
        return target

    def _refuse_view(self) -> NoReturn:
        raise RuntimeError(
            f"Batching rule not implemented for {self.op.qualified_name}; the fallback path "
            "doesn't work on out= or view ops."
        )


def _refuse_write(op: Operator, in_dims: tuple[Any, ...]) -> NoReturn:
    arguments = op.schema.arguments
    named = [a.name for a, dim in zip(arguments, in_dims, strict=True) if any_batched((dim,))]
    raise RuntimeError(
        f"vmap: {op.qualified_name}(self, *extra_args) is not possible because there exists a "
        f"Tensor `{named[0]}` in extra_args that has more elements than `self`. This happened due "
        f"to `{named[0]}` being vmapped over but `self` not being vmapped over in a vmap. Please "
        f"try to use out-of-place operators instead of {op.qualified_name}."
    )


def wrap_batched(op: Operator, level: Level, out: Any, out_dims: Any) -> Any:
    """What an operator's rule gave, as tensors of the level."""
    made = wrap_batched_tree(level, out, out_dims)
    named: Any = result_type_of(op) if isinstance(made, tuple) else None
    return made if named is None else named(*made)


def wrap_batched_tree(level: Level, out: Any, out_dims: Any) -> Any:
    """Outputs with a batch, as tensors of the level."""
    if isinstance(out, TensorBase):
        if out_dims is None:
            return out
        dim: int = out_dims
        return make_level_tensor(out, level, dim if dim >= 0 else dim + len(sizes_of(out)))
    if isinstance(out, (list, tuple)):
        dims: Any = out_dims if isinstance(out_dims, (list, tuple)) else [out_dims] * len(out)
        pairs = zip(out, dims, strict=True)
        return like(out, [wrap_batched_tree(level, item, dim) for item, dim in pairs])
    return out
