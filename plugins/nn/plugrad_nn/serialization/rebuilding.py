"""Rebuilds tensors from PyTorch's files: from storages, and positions of tensors in them. The
functions that PyTorch's files call are methods here. Files are untrusted, so they check all
arguments.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

import plugrad
from plugrad import Tensor
from plugrad.nn.parameter import Buffer, Parameter

Bytes = npt.NDArray[np.uint8]
# NumPy's arrays and PyTorch's tensors have no more.
MOST_DIMENSIONS = 64


@dataclass
class LoadedStorage:
    """A storage of a file.

    Attributes:
        storage: the storage that programs see, on its device.
        dtype: its dtype in the file; None for bytes.
        host: its bytes, if it is on the CPU.
        base: a vector on its memory, if it is elsewhere.
        swapped: whether its bytes have the other byte order, until a tensor gives its dtype.
    """

    storage: Any
    dtype: plugrad.dtype | None
    host: Bytes | None
    base: Tensor | None
    swapped: bool = False


class Rebuilder:
    """Keeps the storages of one file, and makes tensors on them."""

    def __init__(self, restore: Callable[[Any, str], Any]) -> None:
        self._restore = restore
        # By identity: that keeps them alive, too.
        self._loaded: dict[int, LoadedStorage] = {}

    def add_storage(
        self, data: Bytes, dtype: plugrad.dtype | None, location: str, swapped: bool = False
    ) -> Any:
        """The storage with these bytes, on the device requested for a tag.

        Args:
            dtype: None for an untyped storage.
            swapped: whether the bytes of each number are in the opposite of the machine's order.
        """
        if swapped and dtype is not None:
            swap_bytes(data, dtype)
        vector = plugrad.from_numpy(data)
        given = vector.untyped_storage()
        restored = self._restore(given, location)
        loaded = _loaded(restored, given, data, dtype)
        loaded.swapped = swapped and dtype is None
        self._loaded[id(loaded.storage)] = loaded
        return loaded.storage

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions, by the names in files."""
        return {
            "torch._utils._rebuild_tensor": self.rebuild_tensor,
            "torch._utils._rebuild_tensor_v2": self.rebuild_tensor_v2,
            "torch._utils._rebuild_tensor_v3": self.rebuild_tensor_v3,
            "torch._utils._rebuild_parameter": self.rebuild_parameter,
            "torch._utils._rebuild_parameter_with_state": self.rebuild_parameter_with_state,
            "torch._utils._rebuild_meta_tensor_no_storage": self.rebuild_meta_tensor,
            "torch._utils._rebuild_device_tensor_from_numpy": self.rebuild_from_numpy,
            "torch._utils._rebuild_device_tensor_from_cpu_tensor": self.rebuild_from_cpu_tensor,
            "torch._utils._rebuild_sparse_tensor": refusal("a sparse tensor", "to_dense()"),
            "torch._utils._rebuild_qtensor": refusal("a quantized tensor", "dequantize()"),
            "torch._utils._rebuild_nested_tensor": refusal("a nested tensor", "unbind()"),
            "torch._utils._rebuild_wrapper_subclass": refusal(
                "a tensor of a class without storage", "plain tensors"
            ),
        }

    def rebuild_tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
        """A tensor of the storage's dtype."""
        loaded = self._of(storage)
        return _tensor_on(loaded, loaded.dtype or plugrad.uint8, offset, size, stride)

    def rebuild_tensor_v2(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        metadata: Any = None,
    ) -> Tensor:
        """The same, with the tensor's attributes; files contain no hooks."""
        made = self.rebuild_tensor(storage, offset, size, stride)
        return _finished(made, requires_grad, metadata)

    def rebuild_tensor_v3(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Tensor:
        """A tensor of a dtype that has no class of storages."""
        loaded, kind = self._of(storage), _dtype(dtype)
        if loaded.swapped and kind.itemsize > 1:
            if loaded.host is None:
                raise NotImplementedError(
                    f"load: tensors of dtype {kind} in a file of the other byte order load "
                    "on the CPU only: use map_location='cpu'"
                )
            swap_bytes(loaded.host, kind)
            loaded.swapped = False
        made = _tensor_on(loaded, kind, offset, size, stride)
        return _finished(made, requires_grad, metadata)

    def rebuild_parameter(self, data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
        """A parameter with the elements of a tensor."""
        return self.rebuild_parameter_with_state(data, requires_grad, backward_hooks, None)

    def rebuild_parameter_with_state(
        self, data: Any, requires_grad: Any, backward_hooks: Any, state: Any
    ) -> Parameter:
        """The same, with the user's attributes."""
        _check(isinstance(data, Tensor), "a parameter is to be made of a tensor", data)
        made = Parameter(data, _flag(requires_grad) and _is_differentiable(data))
        set_state(made, state)
        return made

    def rebuild_meta_tensor(self, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
        """A tensor without data."""
        sizes, strides = _layout(size, stride)
        made = plugrad.empty_strided(sizes, strides, dtype=_dtype(dtype), device="meta")
        return _finished(made, requires_grad, None)

    def rebuild_from_numpy(self, data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
        """A tensor from a device with tensors saved as arrays."""
        _check(isinstance(data, np.ndarray), "expected a NumPy array", data)
        made = plugrad.from_numpy(data).to(_dtype(dtype))
        return self.rebuild_from_cpu_tensor(made, dtype, device, requires_grad)

    def rebuild_from_cpu_tensor(
        self, data: Any, dtype: Any, device: Any, requires_grad: Any
    ) -> Tensor:
        """The same, from a tensor on the CPU."""
        _check(isinstance(data, Tensor), "expected a tensor", data)
        # Called only to find the device: the result has no elements.
        nothing = plugrad.empty(0, dtype=plugrad.uint8).untyped_storage()
        place = self._restore(nothing, str(device)).device
        return _finished(data.to(_dtype(dtype)).to(place), requires_grad, None)

    def _of(self, storage: Any) -> LoadedStorage:
        loaded = self._loaded.get(id(storage))
        if loaded is None:
            raise pickle.UnpicklingError(f"expected a storage of the file, got {_shown(storage)}")
        return loaded


def swap_bytes(data: Bytes, dtype: plugrad.dtype) -> None:
    """Reverse the bytes of each number, in place; a complex one is two."""
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    numbers = data[: len(data) // size * size].reshape(-1, size)
    numbers[:] = numbers[:, ::-1].copy()


def _loaded(restored: Any, given: Any, data: Bytes, dtype: plugrad.dtype | None) -> LoadedStorage:
    if restored is given:
        if dtype is None:
            return LoadedStorage(given, None, data, None)
        return LoadedStorage(_typed(plugrad.from_numpy(data.view(dtype.numpy))), dtype, data, None)
    kind = dtype or plugrad.uint8
    if restored.device.type == "meta":
        base = plugrad.empty(len(data) // kind.itemsize, dtype=kind, device="meta")
    else:
        # In its own dtype, since reading memory as another one costs at every use on some devices.
        vector = plugrad.empty(0, dtype=kind, device=restored.device).set_(restored)
        base = vector.clone() if dtype is not None else vector
    storage = base.untyped_storage() if dtype is None else _typed(base)
    return LoadedStorage(storage, dtype, None, base)


def _typed(vector: Tensor) -> Any:
    return plugrad.TypedStorage(vector)


def _tensor_on(
    loaded: LoadedStorage, dtype: plugrad.dtype, offset: Any, size: Any, stride: Any
) -> Tensor:
    """The tensor in a storage, from an element on."""
    sizes, strides = _layout(size, stride)
    _check(type(offset) is int and offset >= 0, "expected an offset of at least 0", offset)
    count = math.prod(sizes)
    length = loaded.storage.nbytes()
    last = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    needed = (offset + last + 1) * dtype.itemsize if count else 0
    if needed > length:
        raise pickle.UnpicklingError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, "
            f"and itemsize {dtype.itemsize} requiring a storage size of {needed} are out of bounds "
            f"for storage of size {length}"
        )
    if not count:
        return plugrad.empty_strided(sizes, strides, dtype=dtype, device=loaded.storage.device)
    if loaded.host is not None:
        steps = tuple(step * dtype.itemsize for step in strides)
        array: Any = np.ndarray(
            sizes, dtype.numpy, loaded.host, offset=offset * dtype.itemsize, strides=steps
        )
        return plugrad.from_numpy(array)
    base = loaded.base
    assert base is not None
    if base.dtype is not dtype:
        base = base[: length // dtype.itemsize * dtype.itemsize].view(dtype)
    return base.as_strided(sizes, strides, offset).detach()


def _layout(size: Any, stride: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths and steps that a tensor can have."""
    for values, name in ((size, "sizes"), (stride, "strides")):
        is_tuple = isinstance(values, tuple)
        fits = is_tuple and all(type(n) is int and 0 <= n < 2**62 for n in values)
        _check(fits, f"expected {name} of at least 0", values)
    _check(
        len(size) == len(stride) <= MOST_DIMENSIONS, "sizes and strides do not go together", size
    )
    # An empty tensor of huge lengths is one that no library can hold.
    _check(math.prod(max(n, 1) for n in size) < 2**62, "too many elements", size)
    return tuple(size), tuple(stride)


def _finished(made: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    if metadata:
        _check(isinstance(metadata, dict), "expected a dict of what a tensor says", metadata)
        if metadata.get("conj") and made.is_complex():
            made = made.conj()
        if metadata.get("neg"):
            made = made._neg_view()
    if not _flag(requires_grad):
        return made
    _check(_is_differentiable(made), "only floating point tensors require grad", made.dtype)
    return made.requires_grad_()


def _is_differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def set_state(tensor: Tensor, state: Any) -> None:
    """Give a tensor the user's attributes that a file has for it."""
    if state is None:
        return
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for part in parts:
        if part is None:
            continue
        fits = isinstance(part, dict) and all(type(name) is str for name in part)
        _check(fits, "expected a dict of attributes", part)
        names = [name for name in part if name.startswith("__") or hasattr(Tensor, name)]
        _check(not names, "attributes must not hide those of tensors", names)
        Tensor.__setstate__(tensor, part)


def rebuild_from_type(func: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """`torch._tensor._rebuild_from_type_v2`: a tensor of a subclass, or with attributes."""
    _check(isinstance(cls, type) and issubclass(cls, Tensor), "expected a class of tensors", cls)
    _check(isinstance(args, tuple) and callable(func), "expected a function and arguments", args)
    made: Any = func(*args)
    _check(isinstance(made, Tensor), "expected a tensor", made)
    if isinstance(state, dict) and "_is_buffer" in state and cls is Tensor:
        cls = Buffer
        state = {name: value for name, value in state.items() if name != "_is_buffer"}
    if type(made) is not cls:
        made = made.as_subclass(cls)
    if cls.__setstate__ is not Tensor.__setstate__:
        made.__setstate__(state)
    else:
        set_state(made, state)
    return made  # type: ignore[no-any-return]  # as_subclass is untyped


def refusal(what: str, instead: str) -> Callable[..., NoReturn]:
    """A function that raises because plugrad has no such tensors."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"load: the file holds {what}, which plugrad does not have; in PyTorch, save "
            f"{instead} of it instead"
        )

    return refuse


def _dtype(value: Any) -> plugrad.dtype:
    _check(isinstance(value, plugrad.dtype), "expected a dtype that plugrad has", value)
    found: plugrad.dtype = value
    return found


def _flag(value: Any) -> bool:
    _check(isinstance(value, bool), "expected a bool for requires_grad", value)
    return bool(value)


def _check(holds: bool, message: str, value: Any) -> None:
    if not holds:
        raise pickle.UnpicklingError(f"{message}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, Tensor | plugrad.TypedStorage | plugrad.UntypedStorage):
        return f"a {type(value).__name__}"
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__}"
    return text if len(text) < 80 else f"{text[:77]}..."
