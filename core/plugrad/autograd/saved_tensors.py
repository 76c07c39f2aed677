"""Context managers for saved tensors: hooks that pack them, and writing to them."""

from __future__ import annotations

# Interpreted: users subclass its classes.
import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from plugrad._generated import functions as F
from plugrad.autograd.grad_mode import no_grad
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Locked, Scope
from plugrad.graph.saved_variable import SavedTensorHooks, disable_saved_tensor_hooks
from plugrad.tensor.aliasing.alias_kernels import observe_writes
from plugrad.tensor.base import Storage, TensorBase, share_storage


class saved_tensors_hooks(SavedTensorHooks):
    """Context manager: keep `pack_hook(tensor)` instead of every tensor that is saved for backward.

    When the tensor is needed, `unpack_hook` is called with what `pack_hook` returned, and must
    return a tensor of the same content, shape, dtype and device. The hooks apply to tensors saved
    by operators and by `save_for_backward`. If blocks are nested, only the innermost hooks apply.

    `pack_hook` runs without recording. It must not write to its input, and its result should
    not refer to its input: an output refers to the node that saves it, so `lambda x: x` makes a
    reference cycle where `lambda x: x.detach()` does not.

    Raises:
        RuntimeError: on entering, within `disable_saved_tensors_hooks`; on saving, if `pack_hook`
            wrote to its input.
        TypeError: on entering, if a hook is not callable; on unpacking, if `unpack_hook` returned
            something that is not a tensor.

    >>> import plugrad
    >>> from plugrad.autograd.saved_tensors import saved_tensors_hooks
    >>> x = plugrad.tensor([1., 2.], requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), plugrad.tensor):
    ...     y = x.exp()
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook


class save_on_cpu(saved_tensors_hooks):
    """Context manager: keep saved tensors in host memory and copy them back for backward.

    A tensor that is already on the host is kept unchanged. `pin_memory` requests page-locked host
    memory; at present it has no effect.

    >>> import plugrad
    >>> from plugrad.autograd.saved_tensors import save_on_cpu
    >>> x = plugrad.tensor([1., 2.], requires_grad=True)
    >>> with save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_pack_to_cpu, _unpack_from_cpu)


def _pack_to_cpu(tensor: Any) -> tuple[Any, Any]:
    return tensor.device, tensor.cpu()


def _unpack_from_cpu(packed: tuple[Any, Any]) -> Any:
    device, tensor = packed
    return tensor.to(device)


class disable_saved_tensors_hooks(Scope, contextlib.ContextDecorator):
    """Context manager and decorator: forbid `saved_tensors_hooks`; using them raises a RuntimeError
    with the given message.

    For features that cannot work with such hooks. Hooks on single tensors stay possible.

    Raises:
        RuntimeError: with `error_message`, if such hooks are in force already.

    >>> from plugrad.autograd.saved_tensors import disable_saved_tensors_hooks, save_on_cpu
    >>> with disable_saved_tensors_hooks("not here"), save_on_cpu():
    ...     pass
    Traceback (most recent call last):
    RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def read(self, state: LocalState) -> Any:
        return state.saved_tensor_hooks_error

    def change(self, state: LocalState) -> None:
        disable_saved_tensor_hooks(self.error_message)

    def restore(self, state: LocalState, before: Any) -> None:
        state.saved_tensor_hooks_error = before


# A tensor at a version: its id, its storage's id, the version.
_TensorId = tuple[int, int, int]
# Memory at a version: the storage's id, the version.
_StorageId = tuple[int, int]


class _Handle:
    """What is saved in place of a tensor; it dies with the graph."""


class _Mutations:
    """Which tensors are saved for backward, and the copies of those written to since.

    Attributes:
        original: the saved tensors without writes.
        cloned: copies, made just before the first write.
        tid_to_weakhandle: the handle of a tensor at a version.
        sid_to_tid: the saved tensors that share a storage.
    """

    def __init__(self) -> None:
        self.cloned: MutableMapping[_Handle, Any] = WeakKeyDictionary()
        self.original: MutableMapping[_Handle, Any] = WeakKeyDictionary()
        self.tid_to_weakhandle: MutableMapping[_TensorId, _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[_StorageId, set[_TensorId]] = defaultdict(set)

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: TensorBase) -> _Handle:
        storage = share_storage(tensor)
        sid = _storage_id(storage)
        tid = (id(tensor), *sid)
        self.sid_to_tid[sid].add(tid)
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = _Handle()
            self.tid_to_weakhandle[tid] = handle
            self.original[handle] = tensor
        return handle

    def unpack(self, handle: _Handle) -> Any:
        if _mutation.allowed_by is not None:
            for kept in (self.cloned, self.original):
                if handle in kept:
                    return kept[handle]
        raise AssertionError(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
            "in which the graph was originally recorded."
        )

    def before_write(self, tensor: TensorBase) -> None:
        """Copy the saved tensors that share the memory that is about to be written to."""
        storage = tensor._shared_storage
        if storage is None:
            return
        for tid in self.sid_to_tid.get(_storage_id(storage), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                with no_grad():
                    self.cloned[handle] = F.clone(self.original[handle])
                del self.original[handle]


def _storage_id(storage: Storage) -> _StorageId:
    return id(storage), storage.version


class _Mutation:
    """The active block: only one `allow_mutation_on_saved_tensors` can be active."""

    def __init__(self) -> None:
        self.allowed_by: _Mutations | None = None
        self.lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        """In the child of a fork: the thread that held the lock does not exist."""
        self.lock = threading.Lock()


_mutation = _Mutation()


class allow_mutation_on_saved_tensors(SavedTensorHooks, contextlib.ContextDecorator):
    """Context manager and decorator: tensors saved for backward may be written to.

    They are copied just before a write, so that backward, which must also run within the block,
    finds the saved values. The context's value holds the copies; they are freed after the block.

    Raises:
        RuntimeError: the blocks are nested.
        AssertionError: backward needs a saved tensor outside the block.

    >>> import plugrad
    >>> from plugrad.autograd.saved_tensors import allow_mutation_on_saved_tensors
    >>> x = plugrad.tensor([1., 2.], requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     loss = (y * y).sum()
    ...     _ = y.zero_()
    ...     loss.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self) -> None:
        mutations = _Mutations()
        self._mutations = mutations
        self.pack_hook = mutations.pack
        self.unpack_hook = mutations.unpack

    def change(self, state: LocalState) -> None:
        super().change(state)
        with Locked(_mutation.lock):
            if _mutation.allowed_by is not None:
                raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
            _mutation.allowed_by = self._mutations
        observe_writes(self._mutations.before_write)

    def restore(self, state: LocalState, before: Any) -> None:
        if _mutation.allowed_by is self._mutations:
            observe_writes(None)
            self._mutations.clear()
            _mutation.allowed_by = None
        super().restore(state, before)

    def value(self) -> _Mutations:
        return self._mutations
