"""`Function.apply` inside transforms: one level after the other, the innermost first.

At a level that records, the Function is a node of that level's graph, and the same Function one
level further out computes its outputs. At a level that maps, its `vmap` is called, or a Function is
built from it that maps `forward`, `backward` and `jvp` over the batch.
"""

from __future__ import annotations

# Interpreted: it makes classes, and runs seldom.
import importlib
from typing import Any

from plugrad._generated import functions as F
from plugrad.dispatch.local_state import LocalState
from plugrad.levels.arguments import values_at
from plugrad.levels.batching import batch_dim_of
from plugrad.levels.mapping import batch_of
from plugrad.levels.trees import leaves_of, map_tree, map_with, shown
from plugrad.ops.batching import VmapInfo
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.levels import (
    VMAP,
    AtLevel,
    Level,
    SteppedOut,
    is_at,
    living,
    make_level_tensor,
    value_at,
)

_MORE = "See docs/functions.md."


def check_for_transforms(function: Any, separate: bool) -> None:
    """RuntimeError if a Function cannot be transformed because it lacks `setup_context`."""
    if not separate:
        raise RuntimeError(
            "In order to use an autograd.Function with plugrad.func transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod; {function.__name__} "
            f"does not. {_MORE}"
        )


def node_class_at_level(function: Any) -> Any:
    """The class of a Function's nodes in the graph of a level: `FooGeneratedBackward`."""
    made = function.__dict__.get("_generated_backward_cls")
    if made is None:
        base: Any = importlib.import_module("plugrad.autograd.function").BackwardCFunction
        name = f"{function.__name__}GeneratedBackward"
        number = function._backward_cls._autograd_function_id
        made = type(name, (base,), {"_forward_cls": function, "_autograd_function_id": number})
        function._generated_backward_cls = made
    return made


def arguments_at(level: Level, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as tensors of a level that records."""

    def lifted(value: Any) -> Any:
        if not isinstance(value, TensorBase):
            return value
        value = living(value)
        return value if is_at(value, level) else make_level_tensor(value, level)

    found: tuple[Any, ...] = map_tree(lifted, args)
    return found


def apply_outside(function: Any, state: LocalState, level: Level, args: tuple[Any, ...]) -> Any:
    """Replaces `forward` at a level that records: applies the Function one level further out."""
    values = _outer(args, level)
    with SteppedOut(level):
        out = function.apply(*values)
    return _wrapped(out, None, level, values, args)


def apply_mapped(
    function: Any, state: LocalState, level: Level, args: tuple[Any, ...], base: Any
) -> Any:
    """`function.apply(*args)` at a level that maps.

    Args:
        base: the class `Function`, to detect what is overridden.

    Raises:
        RuntimeError: there is no rule for batches, or there are two; or `vmap` returned something
            else than output and dimensions.
        TypeError, IndexError: `vmap` returned an invalid dimension.
    """
    args = map_tree(lambda value: living(value) if isinstance(value, TensorBase) else value, args)
    in_dims = _dims(args, level)
    own = function.vmap is not base.vmap
    generated = bool(function.generate_vmap_rule)
    name = function.__name__
    if own and generated:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_MORE}"
        )
    values = _outer(args, level)
    with SteppedOut(level):
        if all(dim is None for dim in leaves_of(in_dims)):
            return function.apply(*values)
        if own:
            info = VmapInfo(level.batch_size, level.randomness)
            out, out_dims = _pair(function.vmap(info, in_dims, *values))
        elif generated:
            mapped = _mapped(function, in_dims, level.batch_size, level.randomness)
            out = mapped.apply(*values)
            out_dims = mapped.out_dims
        else:
            raise RuntimeError(
                f"You tried to vmap over {name}, but it does not have vmap support. Please "
                "override and implement the vmap staticmethod or set generate_vmap_rule=True. "
                f"{_MORE}"
            )
    try:
        return _wrapped(out, out_dims, level, values, args)
    except ValueError:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {shown(out_dims)} but output has structure {shown(out)}. "
            f"{_MORE}"
        ) from None


def _pair(returned: Any) -> tuple[Any, Any]:
    """What `vmap` returned, if it is an output and its dimensions."""
    expected = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output. Got "
    )
    if not isinstance(returned, tuple):
        raise RuntimeError(f"{expected}a {type(returned)} instead")
    if len(returned) != 2:
        raise RuntimeError(f"{expected}{len(returned)} returns instead")
    return returned


def _wrapped(
    out: Any, out_dims: Any, level: Level, values: tuple[Any, ...], args: tuple[Any, ...]
) -> Any:
    """Outputs as tensors of a level; one that is among `values` is the argument itself.

    Raises:
        ValueError: `out` and `out_dims` differ in structure.
    """
    pairs = zip(leaves_of(values), leaves_of(args), strict=True)
    arguments = {id(value): argument for value, argument in pairs}

    def wrap(value: Any, dim: Any) -> Any:
        if not isinstance(value, TensorBase):
            return value
        if id(value) in arguments:
            return arguments[id(value)]
        if dim is None:
            return value if level.kind == VMAP else make_level_tensor(value, level)
        return make_level_tensor(value, level, _place_of_batch(value, dim))

    return map_with(wrap, out, out_dims)


def _place_of_batch(value: TensorBase, dim: Any) -> int:
    if not isinstance(dim, int):
        raise TypeError(
            "The autograd.Function's vmap staticmethod returned out_dims with "
            f"{type(dim).__name__} in it; each must be an int or None"
        )
    ndim = len(sizes_of(value))
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def _mapped(function: Any, in_dims: tuple[Any, ...], batch_size: int, randomness: str) -> Any:
    """A Function of batches that does what `function` does for each of their elements."""
    base: Any = importlib.import_module("plugrad.autograd.function").Function

    def at_level(run: Any) -> Any:
        with AtLevel(VMAP, batch_size, randomness) as level:
            return run(level)

    boxed = bool(function.boxed_grads_call)

    class Mapped(base):  # type: ignore[misc]  # known when it runs
        generate_vmap_rule = True
        out_dims: Any = None

        @staticmethod
        def forward(*operands: Any) -> Any:
            def run(level: Level) -> Any:
                output = function.forward(*_slices(operands, in_dims, level))
                Mapped.out_dims = _dims(output, level)
                return _outer(output, level)

            return at_level(run)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            def run(level: Level) -> None:
                slices = _slices(inputs, in_dims, level)
                dims = Mapped.out_dims
                results = _slices(output, dims, level)
                stand_in = _Context(ctx.needs_input_grad)
                function.setup_context(stand_in, slices, results)
                stand_in.hand_on(ctx, level)
                outer = leaves_of((inputs, output))
                inside = leaves_of((slices, results))
                for note in ("dirty_tensors", "non_differentiable"):
                    marked = stand_in.__dict__.pop(note, None)
                    if marked is not None:
                        found = [outer[_place(item, inside)] for item in marked]
                        setattr(ctx, note, tuple(found))
                ctx.of_samples = stand_in

            at_level(run)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            def run(level: Level) -> Any:
                dims = Mapped.out_dims if isinstance(Mapped.out_dims, tuple) else (Mapped.out_dims,)
                stand_in = ctx.of_samples.take_up(ctx, level)
                slices = _slices(grads, dims, level)
                found = function.backward(stand_in, *([[*slices]] if boxed else slices))
                items = found if isinstance(found, tuple) else (found,)
                pairs = zip(items, in_dims, strict=False)
                return tuple([_gradient(item, dim, level) for item, dim in pairs])

            return at_level(run)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            def run(level: Level) -> Any:
                stand_in = ctx.of_samples.take_up_forward(level)
                found = function.jvp(stand_in, *_slices(tangents, in_dims, level))
                several = isinstance(found, tuple)
                dims = Mapped.out_dims if several else (Mapped.out_dims,)
                items = [
                    batch_of(item, level, dim if isinstance(dim, int) else 0)
                    if isinstance(item, TensorBase)
                    else item
                    for item, dim in zip(found if several else (found,), dims, strict=True)
                ]
                return tuple(items) if several else items[0]

            return at_level(run)

    name = f"Vmapped{function.__name__}"
    Mapped.__name__ = Mapped.__qualname__ = name
    Mapped._backward_cls.__name__ = Mapped._backward_cls.__qualname__ = f"{name}Backward"
    return Mapped


class _Context:
    """The `ctx` of one sample: it keeps where the tensors that are saved have their batch."""

    def __init__(self, needs_input_grad: Any) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] | None = None
        self._saved_for_forward: tuple[Any, ...] | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self._saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    def hand_on(self, ctx: Any, level: Level) -> None:
        """Save what was saved, as tensors one level further out."""
        if self._saved is not None:
            self._dims = [batch_dim_of(item, level) for item in self._saved]
            ctx.save_for_backward(*values_at(self._saved, level))
            self._saved = None
        if self._saved_for_forward is not None:
            self._forward_dims = [batch_dim_of(item, level) for item in self._saved_for_forward]
            self._forward_values = values_at(self._saved_for_forward, level)
            self._saved_for_forward = None
        if "materialize_grads" in self.__dict__:
            ctx.set_materialize_grads(self.materialize_grads)

    def take_up(self, ctx: Any, level: Level) -> _Context:
        """The saved tensors, as tensors of the level at which `backward` runs."""
        saved = ctx.saved_tensors
        self.needs_input_grad = ctx.needs_input_grad
        self.saved_tensors = _slices(saved, tuple(self._dims) if saved else (), level)
        return self

    def take_up_forward(self, level: Level) -> _Context:
        """As `take_up`, for `jvp`."""
        values = getattr(self, "_forward_values", ())
        dims = tuple(self._forward_dims) if values else ()
        self.saved_tensors = _slices(values, dims, level)
        return self


def _place(wanted: object, among: list[Any]) -> int:
    return next(place for place, item in enumerate(among) if item is wanted)


def _slices(values: Any, dims: Any, level: Level) -> Any:
    """Batches as tensors of a level."""

    def tensor_of_level(value: Any, dim: Any) -> Any:
        if not isinstance(dim, int) or not isinstance(value, TensorBase):
            return value
        return make_level_tensor(value, level, dim)

    if not isinstance(values, tuple):
        return map_with(tensor_of_level, values, dims)
    # Where an argument or output is a list, its gradient is None.
    pairs = zip(values, dims, strict=True)
    return tuple(
        [value if value is None else map_with(tensor_of_level, value, dim) for value, dim in pairs]
    )


def _dims(tree: Any, level: Level) -> Any:
    """For each leaf of a tree, which of its dimensions a level maps over."""
    return map_tree(lambda value: batch_dim_of(value, level), tree)


def _outer(tree: Any, level: Level) -> Any:
    """A tree of tensors one level further out."""
    return map_tree(
        lambda value: value_at(value, level) if isinstance(value, TensorBase) else value, tree
    )


def _gradient(gradient: Any, in_dim: Any, level: Level) -> Any:
    """The gradient of a batch, or of what all its elements share."""
    if not isinstance(gradient, TensorBase):
        return gradient
    if isinstance(in_dim, int):
        return batch_of(gradient, level, in_dim)
    if batch_dim_of(gradient, level) is None:
        # Every element has it.
        public: Any = value_at(gradient, level)
        return public * level.batch_size
    return F.sum(batch_of(gradient, level, 0), 0)
