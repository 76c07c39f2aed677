"""Attributes of tensors for which plugrad has only one answer, and older spellings."""

from __future__ import annotations

# Interpreted: it is mixed into an interpreted class.
import importlib
from typing import Any

from plugrad._generated import functions as F
from plugrad._torch_names.storage import (
    TypedStorage,
    UntypedStorage,
    storage_of,
    strided_view,
)
from plugrad._torch_names.typed_tensors import dtype_of, type_of, typed_tensor
from plugrad.autograd.variable.resizing import resize_, set_
from plugrad.device import as_device
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.caller import warn_at_caller
from plugrad.memory_format import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    preserve_format,
)
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.aliasing.memory_layout import suggested_format
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.annotations import explain_receivers, explains
from plugrad.tensor.calls.arguments import (
    MISSING,
    gather_varargs,
    int_argument,
    int_list_argument,
    optional_memory_format_argument,
)
from plugrad.tensor.creation.from_data import tensor
from plugrad.tensor.creation.transfer import is_pinned, pin_memory
from plugrad.tensor.math_bits import is_conj, is_neg


def _never(doc: str) -> property:
    return property(lambda self: False, doc=doc)


_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def _functional() -> Any:
    return importlib.import_module("plugrad.functional")


def _format(value: Any, function: str) -> MemoryFormat | None:
    return optional_memory_format_argument(value, function, "memory_format", 0)


@explain_receivers
class TensorAttributes:
    """Mixed into `Tensor`."""

    layout = property(lambda self: "strided", doc="How elements lie in memory: with strides.")
    name = property(lambda self: None, doc="None: tensors have no names.")
    is_cuda = property(lambda self: self.device.type == "cuda", doc="Whether it lives on a GPU.")
    is_meta = property(lambda self: self.device.type == "meta", doc="Whether it has no elements.")
    is_mps = property(lambda self: self.device.type == "mps", doc="Whether it lives on Apple's.")
    is_xpu = property(lambda self: self.device.type == "xpu", doc="Whether it lives on Intel's.")
    is_sparse = _never("Whether zeros are left out: never.")
    is_sparse_csr = _never("Whether zeros are left out, by rows: never.")
    is_mkldnn = _never("Whether elements are in MKL-DNN's order: never.")
    is_quantized = _never("Whether elements are quantized: never.")
    is_nested = _never("Whether it holds tensors of several shapes: never.")

    @property
    def volatile(self) -> bool:
        """False; grad modes took its place.

        >>> import warnings
        >>> import plugrad
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     plugrad.ones(2).volatile
        False
        """
        warn_at_caller("volatile was removed (Variable.volatile is always False)")
        return False

    def is_conj(self: Any) -> bool:
        """Whether it is a view that conjugates the elements in its memory.

        >>> import plugrad
        >>> x = plugrad.tensor([1 + 2j])
        >>> x.conj().is_conj(), x.conj().resolve_conj().is_conj()
        (True, False)
        """
        return is_conj(self)

    def is_neg(self: Any) -> bool:
        """Whether it is a view that negates the elements in its memory.

        >>> import plugrad
        >>> x = plugrad.tensor([1 + 2j])
        >>> x.conj().imag.is_neg(), x.imag.is_neg()
        (True, False)
        """
        return is_neg(self)

    @explains
    def is_same_size(self: Any, other: TensorBase) -> bool:
        """Whether the shapes are equal.

        >>> import plugrad
        >>> plugrad.ones(2, 3).is_same_size(plugrad.zeros(2, 3))
        True
        """
        return bool(self.shape == other.shape)

    def is_nonzero(self: Any) -> bool:
        """`bool(tensor)`; RuntimeError unless there is exactly one element.

        >>> import plugrad
        >>> plugrad.tensor([[0.5]]).is_nonzero()
        True
        """
        return bool(self)

    @explains
    def is_set_to(self: Any, tensor: TensorBase) -> bool:
        """Whether both have the same elements in memory, with the same shape and strides.

        >>> import plugrad
        >>> x = plugrad.arange(6)
        >>> x.view(6).is_set_to(x), x.view(2, 3).is_set_to(x), x.clone().is_set_to(x)
        (True, False, False)
        """
        other: Any = tensor
        if self is other:
            return True
        same = self.shape == other.shape and strides(self) == strides(other)
        if not same or self.storage_offset() != other.storage_offset():
            return False
        if self.device is not other.device or self.is_meta:
            return False
        return bool(self.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())

    def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions from the one with the greatest step in memory to that with the least.

        With `ambiguity_check`, True or a list of memory formats that are looked for first, a
        RuntimeError says that there is more than one order.

        >>> import plugrad
        >>> plugrad.zeros(2, 3, 4).permute(2, 0, 1).dim_order()
        (1, 2, 0)
        """
        if self.ndim == 0:
            return ()
        formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else ()
        for wanted in formats:
            if self.is_contiguous(memory_format=wanted):
                return _ORDERS.get(wanted, tuple(range(self.ndim)))
        steps = strides(self)
        ambiguous = 1 in self.shape or len(set(steps)) < self.ndim
        if ambiguity_check and ambiguous:
            raise RuntimeError("The tensor does not have unique dim order.")
        return tuple(sorted(range(self.ndim), key=lambda dim: -steps[dim]))

    def unique(
        self: Any,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        """`plugrad.unique(tensor)`: the different elements, or slices along `dim`, in order.

        >>> import plugrad
        >>> plugrad.tensor([3, 1, 3, 2]).unique()
        tensor([1, 2, 3])
        """
        return _functional().unique(self, sorted, return_inverse, return_counts, dim)

    def unique_consecutive(
        self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """`plugrad.unique_consecutive(tensor)`: the first of each run of equal elements.

        >>> import plugrad
        >>> plugrad.tensor([1, 1, 2, 2, 1]).unique_consecutive()
        tensor([1, 2, 1])
        """
        return _functional().unique_consecutive(self, return_inverse, return_counts, dim)

    def get_device(self: Any) -> int:
        """The index of the device; -1 for the host, and for `meta`.

        >>> import plugrad
        >>> plugrad.ones(2).get_device()
        -1
        """
        return -1 if self.device.is_host else int(self.device.index or 0)

    def cuda(
        self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Any:
        """The tensor on a GPU, by default the current one; itself if it is there already.

        Raises:
            BackendNotFoundError, PluginError: no backend for GPUs is installed, or none can be
                used; the message says how to fix it.
            RuntimeError: `device` is not a GPU.

        >>> import plugrad
        >>> x = plugrad.ones(2)
        >>> x = x.cuda() if plugrad.cuda.is_available() else x
        >>> x.tolist()
        [1.0, 1.0]
        """
        if device is None or isinstance(device, int):
            wanted = as_device("cuda", device)
        else:
            wanted = as_device(device)
        if wanted.type != "cuda":
            raise RuntimeError(f"Invalid device, must be cuda device, but got {wanted}")
        if device is None and self.device.type == "cuda":
            wanted = self.device
        return self.to(wanted, non_blocking=non_blocking, memory_format=memory_format)

    def pin_memory(self: Any, device: Any = None) -> Any:
        """The tensor in page-locked host memory, from which copies to a device can overlap with
        work; itself if it is there already.

        Raises:
            RuntimeError: it is not on the CPU; or there is no device that needs such memory.

        >>> import plugrad
        >>> x = plugrad.ones(2)
        >>> x = x.pin_memory() if plugrad.cuda.is_available() else x
        >>> x.tolist()
        [1.0, 1.0]
        """
        return pin_memory(self, device)

    def is_pinned(self: Any, device: Any = None) -> bool:
        """Whether it is in page-locked host memory.

        >>> import plugrad
        >>> plugrad.ones(2).is_pinned()
        False
        """
        return is_pinned(self)

    def record_stream(self: Any, s: Any) -> None:
        """Note that another stream than the tensor's own uses it. Its memory is reused only when
        that stream has finished all work that it had when the tensor was freed.

        Raises:
            NotImplementedError: its device has no streams.

        >>> import plugrad
        >>> plugrad.ones(2).record_stream(None)
        Traceback (most recent call last):
            ...
        NotImplementedError: record_stream() needs a device with streams, such as 'cuda', got 'cpu'
        """
        active = find_backend(self.device.type)
        if not active.streams:
            raise NotImplementedError(
                f"record_stream() needs a device with streams, such as 'cuda', got '{self.device}'"
            )
        active.backend.record_stream(self._backend_array, s)

    def data_ptr(self: Any) -> int:
        """The address of the first element, if the array exposes it; 0 of a tensor without data.

        Raises:
            RuntimeError: the backend's arrays have no address.

        >>> import plugrad
        >>> x = plugrad.arange(4)
        >>> x[1:].data_ptr() - x.data_ptr()
        8
        """
        if self.numel() == 0 or self.device.type == "meta":
            return 0
        interface = getattr(self._backend_array, "__array_interface__", None)
        if interface is None:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return int(interface["data"][0])

    def untyped_storage(self: Any) -> UntypedStorage:
        """The memory that the tensor shares with its views, as bytes.

        >>> import plugrad
        >>> plugrad.arange(6).view(2, 3)[0].untyped_storage().nbytes()
        48
        """
        return storage_of(self)

    def storage(self: Any) -> TypedStorage:
        """The memory that the tensor shares with its views, as elements of its dtype.

        >>> import plugrad
        >>> plugrad.arange(4)[2:].storage().tolist()
        [0, 1, 2, 3]
        """
        return TypedStorage(self)

    def where(self: Any, condition: Any, other: Any) -> Any:
        """The elements where `condition` holds, and the elements of `other` elsewhere.

        >>> import plugrad
        >>> x = plugrad.tensor([-1.0, 2.0])
        >>> x.where(x > 0, 0.0)
        tensor([0., 2.])
        """
        return F.where(condition, self, other)

    def type(
        self: Any, dtype: Any = None, non_blocking: bool = False, *, memory_format: Any = None
    ) -> Any:
        """The name of the type, such as ``plugrad.FloatTensor``; or the tensor in a given type.

        Raises:
            TypeError: neither a dtype, nor a type or its name.
            ValueError: there is no type of that name.

        >>> import plugrad
        >>> x = plugrad.tensor([1.5])
        >>> x.type(), x.type("plugrad.LongTensor")
        ('plugrad.FloatTensor', tensor([1]))
        """
        if dtype is None:
            return type_of(self)
        return self.to(dtype_of(dtype), non_blocking=non_blocking, memory_format=memory_format)

    def new(self: Any, *args: Any) -> Any:
        """A tensor of this dtype, on this device: of given sizes, or with given elements.

        >>> import plugrad
        >>> plugrad.ones(1, dtype=plugrad.float64).new([1, 2])
        tensor([1., 2.], dtype=plugrad.float64)
        """
        return typed_tensor("new()", self.dtype, args).to(self.device)

    def new_tensor(
        self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Any:
        """A leaf that copies `data`, of this dtype and on this device unless others are given.

        >>> import plugrad
        >>> plugrad.ones(1, dtype=plugrad.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=plugrad.float64)
        """
        if isinstance(data, TensorBase):
            warn_at_caller(
                "To copy construct from a tensor, it is recommended to use "
                "sourceTensor.detach().clone() or "
                "sourceTensor.detach().clone().requires_grad_(True), rather than "
                "tensor.new_tensor(sourceTensor).",
            )
            public: Any = data
            made = (
                public.detach()
                .clone()
                .to(
                    dtype=self.dtype if dtype is None else dtype,
                    device=self.device if device is None else device,
                )
            )
            return made.requires_grad_(requires_grad)
        return tensor(
            data,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
            requires_grad=requires_grad,
        )

    def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
        """Change the tensor's shape in place; new elements are not initialised.

        Raises:
            RuntimeError: it requires grad; a size is negative.

        >>> import plugrad
        >>> plugrad.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
        """
        sizes = gather_varargs(size, None, "resize_", "size", MISSING)
        wanted = _format(memory_format, "resize_")
        resize_(self, int_list_argument(sizes, "resize_", "size", 1), wanted)
        return self

    @explains
    def resize_as_(self: Any, the_template: TensorBase, *, memory_format: Any = None) -> Any:
        """`resize_` to the shape of another tensor; `preserve_format` means its format.

        >>> import plugrad
        >>> plugrad.arange(6).resize_as_(plugrad.zeros(2, 3))
        tensor([[0, 1, 2],
                [3, 4, 5]])
        """
        wanted = _format(memory_format, "resize_as_")
        if wanted is preserve_format:
            wanted = suggested_format(sizes_of(the_template), strides(the_template))
        resize_(self, tuple(the_template.shape), wanted)
        return self

    @explains
    def set_(
        self: Any,
        source: TensorBase | TypedStorage | UntypedStorage | None = None,
        storage_offset: int = 0,
        size: Any = None,
        stride: Any = None,
    ) -> Any:
        """Share the memory of another tensor or of a storage; without one, be empty.

        Args:
            storage_offset, size, stride: which elements of the memory, in elements of this dtype;
                by default a tensor's own, or a storage's from the first to the last one.

        Raises:
            RuntimeError: the dtypes differ, the memory holds fewer elements, or the tensor requires
                grad and grad mode is on.

        >>> import plugrad
        >>> x, y = plugrad.zeros(2), plugrad.tensor([1.0, 2.0])
        >>> _ = x.set_(y)
        >>> _ = y.mul_(10)
        >>> x
        tensor([10., 20.])
        """
        given: Any = source
        if size is not None and isinstance(source, TensorBase) and given.dtype is self.dtype:
            given = given.untyped_storage()
        if isinstance(given, (TypedStorage, UntypedStorage)):
            offset = int_argument(storage_offset, "set_", "storage_offset", 2)
            if size is None:
                sizes: tuple[int, ...] = (given.nbytes() // self.dtype.itemsize - offset,)
            else:
                sizes = int_list_argument(size, "set_", "size", 3)
            steps = None if stride is None else int_list_argument(stride, "set_", "stride", 4)
            given = strided_view(given, self.dtype, offset, sizes, steps)
        set_(self, given)
        return self

    def _view_func(self: Any, new_base: Any) -> Any:
        """The same view of another base, which must be of the base's shape.

        Raises:
            RuntimeError: this is not a view.
        """
        view = self._view_info
        if view is None:
            raise RuntimeError("_view_func() can only be called on views")
        return view.replay(new_base)
