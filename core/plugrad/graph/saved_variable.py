"""SavedVariable: a tensor that backward will need, with the version it must still have.

Nodes keep most of their inputs without one: the tensor itself beside a number, its `stamp`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, final

from mypy_extensions import i32, i64, mypyc_attr

from plugrad.dispatch.keys import AUTOGRAD_BIT
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.graph import node as nodes
from plugrad.graph.history import grad_fn_of
from plugrad.graph.node import operator_name
from plugrad.tensor.base import (
    TensorBase,
    detached,
    materialize_meta,
    needs_grad,
    sizes_of,
    version_of,
)
from plugrad.tensor.calls.overridable import call_users
from plugrad.tensor.dual import Tangent, attach_tangent, own_tangent

if TYPE_CHECKING:
    from plugrad.graph.node import Node

FREED_MESSAGE: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)

# The value of `SavedVariable.output_nr` for a tensor that is not an output of the node that saved
# it.
LEAF: Final = -1
NON_LEAF: Final = -2


@final
class _DefaultHooks:
    """How many `saved_tensors_hooks` blocks are open, on whatever thread.

    While there are none, saving a tensor does not look for its thread's hooks.
    """

    def __init__(self) -> None:
        self.open: i64 = 0


_default_hooks: Final = _DefaultHooks()


@final
class Packed:
    """The packed form of a saved tensor with hooks, and its place in the graph.

    Attributes:
        data: what the pack hook returned.
        unpack: the hook that turns it back into a tensor; None if only `view` matters.
        grad_fn, output_nr: the place in the graph of an input that is not a leaf.
        requires_grad, accumulator: of a leaf; the accumulator is a weak reference.
        view: weak reference to an output that is a view and was written to in place, so that its
            grad_fn is not the node that saved it.
        tangent: a dual tensor's tangent.
    """

    def __init__(self, unpack: Any) -> None:
        self.data: Any = None
        self.unpack: Any = unpack
        self.grad_fn: Node | None = None
        self.output_nr: i32 = 0
        self.requires_grad: bool = False
        self.accumulator: Any = None
        self.view: Any = None
        self.tangent: Tangent | None = None


@final
class SavedVariable:
    """A saved forward input or output.

    A leaf or an input is kept as it is. Any other output would form a cycle (tensor -> grad_fn ->
    saved tensor), so it is kept without its history, which `unpack` puts back. With hooks, only
    what the pack hook returned is kept.

    Attributes:
        tensor: the tensor itself, or the output's data; None once it was packed.
        saved_version: its version at the time.
        output_nr: the output's number; `LEAF` or `NON_LEAF` if the tensor is kept as it is.
        packed: made only for a tensor with hooks, and for an output that is a view.

    With a `stamp`, it is about an input that was kept with that one, and no hook is called.
    """

    def __init__(self, tensor: TensorBase, output_nr: i64 = -1, stamp: i64 = -1) -> None:
        if stamp >= 0:
            self.packed: Packed | None = None
            self.saved_version: i32 = i32(stamp >> 1)
            self.output_nr: i32 = i32(NON_LEAF) if stamp & 1 else i32(LEAF)
            self.tensor: TensorBase | None = tensor
            return
        if tensor._keyset & AUTOGRAD_BIT == 0:
            _refuse_inference()
        meta = tensor._autograd_meta
        self.packed = None
        # `version_of`, without the call.
        storage = tensor._shared_storage
        self.saved_version = i32(0) if storage is None else i32(storage.version)
        if meta is None or meta.grad_fn is None:
            self.output_nr = i32(LEAF)
            self.tensor = tensor
        elif output_nr < 0:
            self.output_nr = i32(NON_LEAF)
            self.tensor = tensor
        else:
            self.output_nr = meta.output_nr
            self.tensor = detached(tensor)
            if tensor._view_info is not None:
                self.packed = Packed(None)
                self.packed.view = weakref.ref(tensor)
        if _default_hooks.open > 0:
            self._pack_by_default(tensor)

    def unpack(self, node: Node | None) -> TensorBase:
        """The tensor, as it was; `node` is the saver.

        Raises:
            RuntimeError: it was modified in place since, or detached in place.
            TypeError: the unpack hook returned no tensor.
        """
        tensor = self.tensor
        if tensor is None:
            return self._unpack_packed(node)
        if i32(version_of(tensor)) != self.saved_version:
            self._modified(tensor, node)
        if self.output_nr == LEAF:
            return tensor
        if self.output_nr == NON_LEAF:
            meta = tensor._autograd_meta
            if meta is None or meta.grad_fn is None:
                _raise_detached()
            return tensor
        result = detached(tensor)
        meta = materialize_meta(result)
        meta.grad_fn = self._grad_fn(node)
        meta.output_nr = self.output_nr
        tangent = own_tangent(tensor)
        if tangent is not None:
            attach_tangent(result, tangent.value, tangent.level)
        return result

    def give_tangent(self, output: TensorBase, tangent: Tangent) -> None:
        """Note the tangent of a saved output, which has got it only after it was saved."""
        if self.tensor is None:
            if self.packed is not None:
                self.packed.tangent = tangent
        elif self.tensor is not output:
            attach_tangent(self.tensor, tangent.value, tangent.level)

    def unpack_for_function(self, node: Node) -> TensorBase:
        """`unpack` for a custom Function. Its backward may use tensors that were detached in place,
        because its saved tensors are not distinguished from its arguments."""
        tensor = self.tensor
        if tensor is not None and self.output_nr == NON_LEAF:
            if i32(version_of(tensor)) != self.saved_version:
                self._modified(tensor, node)
            return tensor
        return self.unpack(node)

    def register_hooks(self, pack: Any, unpack: Any) -> None:
        """Pack the tensor now, and unpack it whenever it is needed.

        Raises:
            RuntimeError: it has hooks already, or `pack` modified its input in place.
        """
        tensor = self.tensor
        if tensor is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        given = detached(tensor) if self.output_nr < 0 else tensor
        self._pack(tensor, given, pack, unpack)
        self.tensor = None

    def raw(self) -> Any:
        """What is kept: the tensor, or what the pack hook returned."""
        packed = self.packed
        return packed.data if self.tensor is None and packed is not None else self.tensor

    def unpack_hook(self) -> Any:
        """The hook that will be called to unpack, or None."""
        return None if self.packed is None else self.packed.unpack

    def _pack_by_default(self, tensor: TensorBase) -> None:
        """Pack with the innermost of the thread's hooks, if there are any."""
        state = current_state()
        hooks = state.saved_tensor_hooks
        if hooks and state.saved_tensor_hooks_error is None:
            pack, unpack = hooks[-1]
            self._pack(tensor, tensor, pack, unpack)
            self.tensor = None

    def _pack(self, tensor: TensorBase, given: TensorBase, pack: Any, unpack: Any) -> None:
        packed = Packed(unpack)
        packed.tangent = own_tangent(tensor)
        meta = tensor._autograd_meta
        if self.output_nr == LEAF:
            packed.requires_grad = needs_grad(tensor)
            packed.accumulator = None if meta is None else meta.accumulator
        elif self.output_nr == NON_LEAF:
            if meta is None or meta.grad_fn is None:
                _raise_detached()
            packed.grad_fn = meta.grad_fn
            packed.output_nr = meta.output_nr
        elif self.packed is not None:
            packed.view = self.packed.view
        version = version_of(tensor)
        state = current_state()
        grad_enabled = state.grad_enabled
        state.grad_enabled = False
        try:
            packed.data = pack(given)
        finally:
            state.grad_enabled = grad_enabled
        if version_of(tensor) != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook cannot be modified by in-place operations as this can lead to "
                "unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook."
            )
        self.packed = packed

    def _unpack_packed(self, node: Node | None) -> TensorBase:
        packed = self.packed
        if packed is None:
            raise_freed()
        data: object = call_users(packed.unpack, (packed.data,))
        if not isinstance(data, TensorBase):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(data).__name__}"
            )
        grad_fn = self._grad_fn(node)
        tangent = packed.tangent
        if tangent is not None and not tangent.level.active:
            tangent = None
        if (
            grad_fn is None
            and not packed.requires_grad
            and not needs_grad(data)
            and tangent is None
        ):
            return data
        result = detached(data)
        if tangent is not None:
            attach_tangent(result, tangent.value, tangent.level)
        meta = materialize_meta(result)
        if grad_fn is not None:
            meta.grad_fn = grad_fn
            if packed.grad_fn is not None:
                meta.output_nr = packed.output_nr
            else:
                meta.output_nr = self.output_nr
        else:
            meta.requires_grad = packed.requires_grad
            meta.accumulator = packed.accumulator
        return result

    def _grad_fn(self, node: Node | None) -> Node | None:
        """The grad_fn of the tensor that `unpack` returns, unless it is the original one."""
        if self.output_nr == LEAF:
            return None
        packed = self.packed
        if packed is not None:
            if packed.grad_fn is not None:
                return packed.grad_fn
            view: TensorBase | None = None if packed.view is None else packed.view()
            if (
                view is not None
                and view._autograd_meta is not None
                and view._autograd_meta.grad_fn is not None
            ):
                info = view._view_info
                # Another one, if the view was written to again since.
                if info is not None and i32(info.version) == self.saved_version:
                    return view._autograd_meta.grad_fn
        if node is None:
            _raise_detached()
        return node

    def _modified(self, tensor: TensorBase, node: Node | None) -> NoReturn:
        sizes = ", ".join(str(size) for size in sizes_of(tensor))
        maker: Node | None = None
        output_nr: int = 0
        if self.output_nr >= 0:
            maker = self._grad_fn(node)
            output_nr = int(self.output_nr)
        else:
            maker = grad_fn_of(tensor)
            if maker is None and self.output_nr == NON_LEAF:
                _raise_detached()
            output_nr = 0 if tensor._autograd_meta is None else int(tensor._autograd_meta.output_nr)
        of = "" if maker is None else f", which is output {output_nr} of {operator_name(maker)},"
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [plugrad.{tensor.dtype.scalar_name}Tensor [{sizes}]]{of} is at version "
            f"{int(version_of(tensor))}; expected version {int(self.saved_version)} instead. "
            + hint()
        )


def hint() -> str:
    """How to find the operator that a failing node belongs to."""
    if nodes.is_node_creation_observed():
        return (
            "Hint: the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable in question was changed in there or anywhere later. Good luck!"
        )
    return (
        "Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with plugrad.autograd.set_detect_anomaly(True, check_nan=False)."
    )


# What a node stores of an input if that is enough: the tensor and its stamp.
Kept: TypeAlias = TensorBase | SavedVariable | None


def keep(tensor: TensorBase) -> Kept:
    """A forward input as a node keeps it, together with `stamp_of` it."""
    if _default_hooks.open > 0 or tensor._keyset & AUTOGRAD_BIT == 0:
        return SavedVariable(tensor)
    return tensor


def keep_optional(tensor: TensorBase | None) -> Kept:
    """`keep`; None stays None."""
    return None if tensor is None else keep(tensor)


def stamp_of(tensor: TensorBase) -> i64:
    """What must not change about a tensor: its version, and whether it is a leaf."""
    storage = tensor._shared_storage
    version: i64 = 0 if storage is None else storage.version
    meta = tensor._autograd_meta
    if meta is None or meta.grad_fn is None:
        return version * 2
    return version * 2 + 1


def stamp_of_optional(tensor: TensorBase | None) -> i64:
    return 0 if tensor is None else stamp_of(tensor)


def kept_tensor(kept: Kept, stamp: i64, node: Node) -> TensorBase:
    """The input that a node has kept.

    Raises:
        RuntimeError: it was released, modified in place since, or detached in place.
    """
    if isinstance(kept, TensorBase):
        if stamp_of(kept) == stamp:
            return kept
        return SavedVariable(kept, -1, stamp).unpack(node)
    if kept is None:
        raise_freed()
    return kept.unpack(node)


def save(tensor: TensorBase | None) -> SavedVariable | None:
    """Save a forward input; None stays None."""
    return None if tensor is None else SavedVariable(tensor)


def raise_freed() -> NoReturn:
    """Raise the error for saved tensors that are needed after they were freed."""
    raise RuntimeError(FREED_MESSAGE)


def _raise_detached() -> NoReturn:
    raise RuntimeError(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
        "This is not supported, please use out-of-place `.detach()` instead"
    )


def push_saved_tensor_hooks(pack: Any, unpack: Any) -> None:
    """Pack and unpack what this thread saves from now on.

    Raises:
        TypeError: a hook is not callable.
        RuntimeError: such hooks are disabled; the message explains why.
    """
    if not callable(pack) or not callable(unpack):
        raise TypeError(
            "saved_tensors_hooks: the pack hook and the unpack hook must be callable, but got "
            f"{type(pack).__name__} and {type(unpack).__name__}"
        )
    state = current_state()
    if state.saved_tensor_hooks_error is not None:
        raise RuntimeError(state.saved_tensor_hooks_error)
    outer = state.saved_tensor_hooks
    state.saved_tensor_hooks = ((pack, unpack),) if outer is None else (*outer, (pack, unpack))
    _default_hooks.open += 1


def pop_saved_tensor_hooks() -> None:
    """Take back the innermost hooks of this thread.

    Raises:
        RuntimeError: there are none.
    """
    state = current_state()
    hooks = state.saved_tensor_hooks
    if not hooks:
        raise RuntimeError("there are no saved tensor hooks to remove on this thread")
    state.saved_tensor_hooks = hooks[:-1] or None
    if _default_hooks.open > 0:
        _default_hooks.open -= 1


@mypyc_attr(allow_interpreted_subclasses=True)
class SavedTensorHooks(Scope):
    """Two hooks pack and unpack what this thread saves within the block."""

    # None until a subclass sets them.
    pack_hook: Any = None
    unpack_hook: Any = None

    def read(self, state: LocalState) -> Any:
        return state.saved_tensor_hooks

    def change(self, state: LocalState) -> None:
        push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def restore(self, state: LocalState, before: Any) -> None:
        hooks = state.saved_tensor_hooks
        if hooks and hooks is not before:
            # As in PyTorch the innermost hooks go, also if those are another block's.
            outer: tuple[tuple[Any, Any], ...] | None = before
            in_order = len(hooks) == 1 + (0 if outer is None else len(outer))
            state.saved_tensor_hooks = outer if in_order else hooks[:-1]
            if _default_hooks.open > 0:
                _default_hooks.open -= 1

    def __exit__(self, *exc_info: object) -> None:
        if not current_state().saved_tensor_hooks:
            self._entries = None
        super().__exit__(*exc_info)

    def leave_unentered(self, state: LocalState) -> None:
        # A block may have been left within a backward pass, which puts its thread's state back.
        pop_saved_tensor_hooks()


def disable_saved_tensor_hooks(message: str | None) -> None:
    """Forbid default hooks on this thread, with the message of the error; None allows them.

    Raises:
        RuntimeError: there are such hooks already.
    """
    state = current_state()
    state.saved_tensor_hooks_error = message
    if message is not None and state.saved_tensor_hooks:
        raise RuntimeError(message)


def why_saved_tensor_hooks_are_disabled() -> str | None:
    """The message that `disable_saved_tensor_hooks` was given, or None."""
    return current_state().saved_tensor_hooks_error


def _refuse_inference() -> NoReturn:
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make a "
        "clone to get a normal tensor and use it in autograd, or use `plugrad.no_grad()` instead "
        "of `plugrad.inference_mode()`."
    )
