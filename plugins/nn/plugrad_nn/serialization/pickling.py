"""Pickles objects as PyTorch does: tensors and their relatives under PyTorch's names, and storages
by an identifier."""

from __future__ import annotations

import codecs
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar, Final

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad.nn.parameter import Buffer, Parameter
from plugrad_nn.nn.state import StateDict
from plugrad_nn.serialization.locations import location_tag
from plugrad_nn.serialization.rebuilding import Bytes
from plugrad_nn.serialization.storage_types import NAMES_OF_STORAGES


class Name:
    """A placeholder for a name in a pickle, which need not exist."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """Pickle needs this for objects that it writes as a call."""


REBUILD_TENSOR: Final = Name("torch._utils", "_rebuild_tensor_v2")
REBUILD_TENSOR_OF_DTYPE: Final = Name("torch._utils", "_rebuild_tensor_v3")
REBUILD_META: Final = Name("torch._utils", "_rebuild_meta_tensor_no_storage")
REBUILD_PARAMETER: Final = Name("torch._utils", "_rebuild_parameter")
REBUILD_PARAMETER_WITH_STATE: Final = Name("torch._utils", "_rebuild_parameter_with_state")
REBUILD_FROM_TYPE: Final = Name("torch._tensor", "_rebuild_from_type_v2")
UNTYPED: Final = Name("torch.storage", "UntypedStorage")
STORAGE_NAMES: Final = {dtype: Name("torch", name) for dtype, name in NAMES_OF_STORAGES.items()}
# Classes that have other names in PyTorch.
CLASS_NAMES: Final = {
    Tensor: Name("torch", "Tensor"),
    Parameter: Name("torch.nn.parameter", "Parameter"),
    plugrad.Size: Name("torch", "Size"),
    plugrad.device: Name("torch", "device"),
    plugrad.UntypedStorage: UNTYPED,
    plugrad.TypedStorage: Name("torch.storage", "TypedStorage"),
}


class SavedStorage:
    """A storage that the pickle refers to.

    Attributes:
        key: its name in the file.
        dtype: None if it is untyped.
        nbytes: its size.
        location: the tag of its device.
        storage: its memory; None for `data`.
        data: bytes that are written in its place.
    """

    def __init__(
        self, key: str, dtype: plugrad.dtype | None, storage: Any, data: Bytes | None
    ) -> None:
        self.key = key
        self.dtype = dtype
        self.storage = storage
        self.data = data
        self.nbytes: int = storage.nbytes() if data is None else data.nbytes
        self.location = location_tag(storage)

    def identifier(self) -> tuple[Any, ...]:
        """Its representation in the pickle."""
        kind = UNTYPED if self.dtype is None else STORAGE_NAMES[self.dtype]
        count = self.nbytes if self.dtype is None else self.nbytes // self.dtype.itemsize
        return ("storage", kind, self.key, self.location, count)

    def bytes(self) -> Bytes:
        """Its bytes, on the host."""
        if self.data is not None:
            return self.data
        found: Bytes = np.ascontiguousarray(np.asarray(self.storage).view(np.uint8))
        return found


_PythonPickler: Any = pickle._Pickler


class TorchPickler(_PythonPickler):  # type: ignore[misc]  # typeshed has little of it
    """Python's pickler in Python, because the one in C can only write names of existing objects.

    Args:
        file: gets the pickle.
        protocol: pickle's.
        with_views: whether identifiers have a sixth item, as in the old format.

    Attributes:
        storages: those that the pickle refers to, in the order of their first use.
    """

    dispatch: ClassVar[dict[type, Callable[..., Any]]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: BinaryIO, protocol: int, with_views: bool = False) -> None:
        super().__init__(file, protocol)
        self.storages: list[SavedStorage] = []
        self._by_memory: dict[Any, SavedStorage] = {}
        self._suffix = (None,) if with_views else ()
        # Classes of tensors are added to it.
        self.__dict__["dispatch"] = dict(type(self).dispatch)

    def persistent_id(self, obj: Any) -> Any:
        """The identifier of a storage."""
        if isinstance(obj, SavedStorage):
            return (*obj.identifier(), *self._suffix)
        if isinstance(obj, plugrad.UntypedStorage):
            return (*self._shared(obj, None).identifier(), *self._suffix)
        if isinstance(obj, plugrad.TypedStorage):
            dtype = obj.dtype if obj.dtype in STORAGE_NAMES else None
            return (*self._shared(obj.untyped(), dtype).identifier(), *self._suffix)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; tensors of any class as PyTorch does."""
        cls = type(obj)
        if cls not in self.dispatch and issubclass(cls, Tensor):
            is_theirs = cls.__reduce_ex__ not in (Tensor.__reduce_ex__, Parameter.__reduce_ex__)
            if not is_theirs:
                self.dispatch[cls] = (
                    TorchPickler._save_parameter
                    if issubclass(cls, Parameter)
                    else TorchPickler._save_tensor
                )
        super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a name; for plugrad's own objects, PyTorch's name."""
        known = CLASS_NAMES.get(obj) if isinstance(obj, type) else None
        if known is None:
            super().save_global(obj, name)
        else:
            self._save_name(known)

    def _save_name(self, name: Name) -> None:
        if self.proto >= 4:
            self.save(name.module)
            self.save(name.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            text = f"{name.module}\n{name.name}\n".encode()
            self.write(pickle.GLOBAL + text)
        self.memoize(name)

    def _save_bytes(self, data: bytes) -> None:
        if data or self.proto >= 3:
            _PythonPickler.dispatch[bytes](self, data)
        else:
            # Otherwise it would be a call of `bytes`, which PyTorch does not allow.
            self._save_call(codecs.encode, ("", "latin1"), data)

    def _save_dtype(self, dtype: plugrad.dtype) -> None:
        self._save_named(("torch", dtype.name), dtype)

    def _save_named(self, name: tuple[str, str], obj: Any) -> None:
        """Write a name for an existing object."""
        before = len(self.memo)
        self._save_name(Name(*name))
        # The memo refers to the object.
        entry = list(self.memo)[-1] if len(self.memo) > before else None
        if entry is not None:
            index, _ = self.memo.pop(entry)
            self.memo[id(obj)] = index, obj

    def _save_size(self, size: plugrad.Size) -> None:
        self._save_call(Name("torch", "Size"), (tuple(size),), size)

    def _save_device(self, device: Any) -> None:
        parts = (device.type,) if device.index is None else (device.type, device.index)
        self._save_call(CLASS_NAMES[plugrad.device], parts, device)

    def _save_call(self, function: Any, args: tuple[Any, ...], obj: Any) -> None:
        self.save_reduce(function, args, obj=obj)

    def _save_state_dict(self, state: StateDict) -> None:
        """PyTorch's state dicts are ordered dicts, with their metadata as an attribute."""
        self.save_reduce(OrderedDict, (), vars(state), None, iter(state.items()), obj=state)

    def _save_tensor(self, tensor: Tensor) -> None:
        cls = type(tensor)
        state = attributes_of(tensor)
        function, args = self._parts_of(tensor, tensor.requires_grad)
        if cls is Tensor and state is None:
            self._save_call(function, args, tensor)
        else:
            shown = Tensor if cls is Buffer else cls
            self._save_call(REBUILD_FROM_TYPE, (function, shown, args, state or {}), tensor)

    def _save_parameter(self, parameter: Parameter) -> None:
        data = parameter.detach()
        if type(data) is not Tensor:
            data = data.as_subclass(Tensor)
        state = attributes_of(parameter)
        args: tuple[Any, ...] = (data, parameter.requires_grad, OrderedDict())
        if state is None:
            self._save_call(REBUILD_PARAMETER, args, parameter)
        else:
            self._save_call(REBUILD_PARAMETER_WITH_STATE, (*args, state), parameter)

    def _parts_of(self, tensor: Tensor, requires_grad: bool) -> tuple[Name, tuple[Any, ...]]:
        """The function that makes a tensor again, and its arguments."""
        _warn_of_hooks(tensor)
        plain = tensor.detach()
        if plain.device.type == "meta":
            layout = (plain.dtype, tuple(plain.shape), plain.stride(), requires_grad)
            return REBUILD_META, layout
        dtype = plain.dtype
        saved, offset, stride = self._placed(plain)
        metadata = {
            name: True
            for name, holds in (("conj", plain.is_conj()), ("neg", plain.is_neg()))
            if holds and saved.data is None
        }
        rest: list[Any] = [offset, tuple(plain.shape), stride, requires_grad, OrderedDict()]
        if dtype not in STORAGE_NAMES:
            rest.append(dtype)
        if metadata:
            rest.append(metadata)
        function = REBUILD_TENSOR if dtype in STORAGE_NAMES else REBUILD_TENSOR_OF_DTYPE
        return function, (saved, *rest)

    def _placed(self, tensor: Tensor) -> tuple[SavedStorage, int, tuple[int, ...]]:
        """The storage to write for a tensor, and the tensor's position in it."""
        dtype = tensor.dtype if tensor.dtype in STORAGE_NAMES else None
        storage = tensor.untyped_storage()
        offset, stride = tensor.storage_offset(), tuple(tensor.stride())
        if _lies_there(tensor, storage, offset, stride):
            return self._shared(storage, dtype), offset, stride
        # The backend's array has no memory that others could share.
        data = np.ascontiguousarray(tensor.numpy(force=True))
        own = SavedStorage(self._next_key(), dtype, storage, data.reshape(-1).view(np.uint8))
        self.storages.append(own)
        return own, 0, _contiguous(tuple(tensor.shape))

    def _shared(self, storage: Any, dtype: plugrad.dtype | None) -> SavedStorage:
        found = self._by_memory.get(storage)
        if found is None:
            found = SavedStorage(self._next_key(), dtype, storage, None)
            self._by_memory[storage] = found
            self.storages.append(found)
        elif found.dtype is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        return found

    def _next_key(self) -> str:
        return str(len(self.storages))


TorchPickler.dispatch.update(
    {
        Name: TorchPickler._save_name,
        plugrad.dtype: TorchPickler._save_dtype,
        plugrad.Size: TorchPickler._save_size,
        type(plugrad.device("cpu")): TorchPickler._save_device,
        Tensor: TorchPickler._save_tensor,
        Parameter: TorchPickler._save_parameter,
        StateDict: TorchPickler._save_state_dict,
        bytes: TorchPickler._save_bytes,
    }
)


def attributes_of(tensor: Tensor) -> dict[str, Any] | None:
    """The user's attributes of a tensor."""
    found = {name: value for name, value in vars(tensor).items() if name not in _FIELDS}
    if isinstance(tensor, Buffer):
        # PyTorch recognises buffers by it.
        found["_is_buffer"] = True
    return found or None


# Where the core is interpreted, its own fields are in the same dict.
_FIELDS: Final = frozenset(
    [
        *("_backend_array", "dtype", "device", "_keyset"),
        *(name for cls in Tensor.__mro__ for name in vars(cls).get("__annotations__", {})),
    ]
)


def _lies_there(tensor: Tensor, storage: Any, offset: int, stride: tuple[int, ...]) -> bool:
    """Whether the bytes of a storage are in the order that strides and offset suppose."""
    size = tensor.dtype.itemsize
    if storage.nbytes() % size:
        return False
    if not tensor.numel():
        return True
    last = sum((n - 1) * step for n, step in zip(tensor.shape, stride, strict=True))
    if offset < 0 or (offset + last + 1) * size > storage.nbytes():
        return False
    if tensor.device.type != "cpu":
        return True
    # An array from elsewhere may have gaps or another memory order.
    memory = np.asarray(storage)
    begin = memory.ctypes.data
    return bool(begin == storage.data_ptr() and begin + offset * size == tensor.data_ptr())


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps: list[int] = []
    step = 1
    for length in reversed(shape):
        steps.insert(0, step)
        step *= max(length, 1)
    return tuple(steps)


def _warn_of_hooks(tensor: Tensor) -> None:
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not getattr(hook, "__torch_unserializable__", False):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.", stacklevel=2)
