"""Interop: tensors to and from NumPy, DLPack, Python numbers, pickle and copy.

Each function is the body of the `Tensor` method of its name.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, Final, NoReturn, final

import numpy as np

from plugrad.device import Device
from plugrad.dispatch.active_backends import (
    ActiveBackend,
    active_backends,
    canonical_device,
    find_backend,
)
from plugrad.dispatch.keys import (
    CONJUGATE_BIT,
    FUNCTIONALIZE_BIT,
    MATH_BITS,
    NEGATIVE_BIT,
    TRANSFORMS_BIT,
)
from plugrad.dispatch.local_state import WATCH, current_state
from plugrad.dtype import ALL_DTYPES, INTEGER, DType, bfloat16
from plugrad.graph.history import grad_fn_of
from plugrad.memory_format import MemoryFormat, contiguous_format
from plugrad.tensor.arguments import type_name
from plugrad.tensor.base import (
    TensorBase,
    ViewInfo,
    empty_shell,
    keyset_without_tangent,
    materialize_meta,
    needs_grad,
    note_read,
    sizes_of,
    steps_up_to,
    tensor_class,
    whole_numbers,
    wrap,
)
from plugrad.tensor.functionalize import is_ordered, layout_of, replay_on_meta
from plugrad.tensor.kernel_failures import allocation_failed
from plugrad.tensor.levels import Wrapped, readable
from plugrad.tensor.math_bits import as_stored, is_conj, is_neg, math_bits, resolved
from plugrad.tensor.memory_layout import has_format
from plugrad.tensor.meta.array import MetaArray
from plugrad.tensor.promotion import cast_array, is_scalar
from plugrad.tensor.strides import contiguous_strides

_OF_NUMPY: Final[dict[str, DType]] = {dtype.name: dtype for dtype in ALL_DTYPES}
_DLPACK_CPU: Final = 1
_FIELDS: Final = frozenset(
    ["array", "dtype", "device", "_keyset", "_meta", "_shared", "_view_info", "_sizes"]
)


def host_array(tensor: TensorBase) -> Any:
    """The elements in a NumPy array; shares memory if the backend's arrays live on the host."""
    if tensor._keyset & TRANSFORMS_BIT:
        tensor = readable(tensor)
    if WATCH.threads > 0:
        note_read(tensor)
    host = find_backend(tensor.device.type).to_host(tensor.array)
    if tensor._keyset & CONJUGATE_BIT:
        host = np.conjugate(host)
    if tensor._keyset & NEGATIVE_BIT:
        host = np.negative(host)
    return host


def from_host(array: Any, dtype: DType, device: Device) -> TensorBase:
    """A tensor on `device` with the elements of a NumPy array, whose memory it may share."""
    active = find_backend(device.type)
    return wrap(active.from_host(array, device.index or 0), dtype, device)


def numpy_dtype(array: Any) -> DType:
    """The dtype of a NumPy array that a tensor can take over.

    Raises:
        TypeError: no dtype of plugrad has this layout.
        ValueError: foreign byte order, negative strides, or strides that split an element.
    """
    dtype = array.dtype
    found = _OF_NUMPY.get(dtype.name)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {dtype.type.__module__}.{dtype.type.__name__}. The "
            "only supported types are: float64, float32, float16, bfloat16, complex64, "
            "complex128, int64, int32, int16, int8, uint8, and bool."
        )
    if not dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    for stride in array.strides:
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) "
            )
        if stride % dtype.itemsize != 0:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy "
                "array to reallocate the memory."
            )
    return found


def share_numpy(array: Any, device: Device) -> TensorBase:
    """A tensor on `device` that shares an array's memory if its backend lives on the host."""
    dtype = numpy_dtype(array)
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and plugrad does not support non-writable "
            "tensors: writing to this tensor will fail. You may want to copy the array to protect "
            "its data or make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=3,
        )
    return from_host(plain_view(array), dtype, device)


def plain_view(array: Any) -> Any:
    """A NumPy array of its own for the same memory, and of no subclass: shape and dtype of an array
    can be assigned, and those of a tensor must not change with it."""
    base: Any = np.ndarray
    return array.view(base)


def to_numpy(self: TensorBase, *, force: bool = False) -> Any:
    """The tensor as a NumPy array; on the host it shares the tensor's memory.

    Args:
        force: also take a tensor that requires grad, or lives on another device.

    Raises:
        RuntimeError: the tensor requires grad and grad mode is on.
        TypeError: the tensor lives on another device.
    """
    if force:
        return plain_view(host_array(self))
    if needs_grad(self) and current_state().grad_enabled:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if math_bits(self):
        _refuse_bits(self)
    if self.device.type != "cpu":
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )
    return plain_view(host_array(self))


def _refuse_bits(tensor: TensorBase) -> NoReturn:
    """NumPy knows no memory whose elements are still to be conjugated."""
    bit, name = ("conjugate", "conj") if is_conj(tensor) else ("negative", "neg")
    raise RuntimeError(
        f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy() "
        "instead."
    )


def array(self: TensorBase, dtype: object = None, copy: bool | None = None) -> Any:
    """`numpy.asarray(tensor)`; a copy only if the dtype differs or `copy` asks for it."""
    host = to_numpy(self)
    if dtype is None and copy is None:
        return host
    as_numpy: Any = np.array
    return as_numpy(host, dtype=dtype, copy=copy)


def array_wrap(
    self: TensorBase, array: Any, context: object = None, return_scalar: bool = False
) -> Any:
    """Make the result of a NumPy function on a tensor a tensor again."""
    if not isinstance(array, (np.ndarray, np.generic, int, float, complex)):
        raise TypeError(
            "Tensor.__array_wrap__(): argument 'array' (position 1) must be numpy.ndarray, not "
            f"{type_name(array)}"
        )
    return share_numpy(np.asarray(array), self.device)


def _number(host: Any) -> Any:
    """The Python number in an array with one element."""
    value: Any = host.item()
    # ml_dtypes gives Python floats for arrays, its own scalars for 0-dim ones.
    return value if isinstance(value, (bool, int, float, complex)) else float(value)


def _readable(self: TensorBase, control_flow: bool = False) -> Any:
    """`host_array` for reading one element."""
    if self.device.type == "meta":
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    if control_flow and self._keyset & TRANSFORMS_BIT:
        self = readable(self, True)
    return host_array(self)


def item(self: TensorBase) -> Any:
    """The one element as a Python number; RuntimeError if there are more or none."""
    host = _readable(self)
    if host.size != 1:
        raise RuntimeError(f"a Tensor with {host.size} elements cannot be converted to Scalar")
    return _number(host)


def tolist(self: TensorBase) -> Any:
    """The elements as nested lists of Python numbers; one number if there are no dimensions."""
    host = host_array(self)
    try:
        if self.dtype is bfloat16:
            host = host.astype(np.float32)
        return host.tolist()
    except MemoryError:
        # A list has a pointer for each element.
        raise RuntimeError(allocation_failed(8 * host.size)) from None


def _single(self: TensorBase) -> Any:
    host = _readable(self)
    if host.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if needs_grad(self):
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            "behavior.\nConsider using tensor.detach() first.",
            UserWarning,
            stacklevel=3,
        )
    return _number(host)


def _real(value: Any, target: str) -> Any:
    if isinstance(value, complex):
        if value.imag != 0.0:
            raise RuntimeError(f"value cannot be converted to type {target} without overflow")
        return value.real
    return value


def to_float(self: TensorBase) -> float:
    """`float(tensor)`; ValueError unless there is exactly one element."""
    return float(_real(_single(self), "double"))


def to_int(self: TensorBase) -> int:
    """`int(tensor)`, towards zero; ValueError unless there is exactly one element."""
    return int(_real(_single(self), "int64_t"))


def to_complex(self: TensorBase) -> complex:
    """`complex(tensor)`; ValueError unless there is exactly one element."""
    return complex(_single(self))


def to_bool(self: TensorBase) -> bool:
    """`bool(tensor)`; RuntimeError unless there is exactly one element."""
    host = _readable(self, True)
    size: int = host.size
    if size == 1:
        return bool(host)
    if size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def index(self: TensorBase) -> int:
    """`operator.index(tensor)`; TypeError unless it holds one integer."""
    if self.dtype.category > INTEGER or self.numel() != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_number(_readable(self)))


def length(self: TensorBase) -> int:
    """The size of the first dimension; TypeError if there is none."""
    sizes = sizes_of(self)
    if not sizes:
        raise TypeError("len() of a 0-d tensor")
    return sizes[0]


def iterate(self: TensorBase) -> Any:
    """An iterator over the slices of the first dimension; TypeError if there is none."""
    if not sizes_of(self):
        raise TypeError("iteration over a 0-d tensor")
    public: Any = self
    return iter(public.unbind(0))


def contains(self: TensorBase, element: object) -> bool:
    """Whether any element equals `element`, a number or a tensor that broadcasts."""
    if not isinstance(element, TensorBase) and not is_scalar(element):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    public: Any = self
    return to_bool((public == element).any())


def to_format(self: TensorBase, spec: str) -> str:
    """`format(tensor, spec)`: a 0-dim tensor formats as its number."""
    if not sizes_of(self) and type(self) is tensor_class():
        return f"{_number(host_array(self)):{spec}}"
    if spec:
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
    return str(self)


def instance_of(cls: Any, source: TensorBase) -> TensorBase:
    """A tensor of class `cls` around the array of `source`, or `source` if it is one.

    The constructor of a subclass is the user's and stays out of it.
    """
    if cls is type(source):
        return source
    made = empty_shell(cls)
    made.array = source.array
    made.dtype = source.dtype
    made.device = source.device
    made._keyset = keyset_without_tangent(source)
    return made


def _attributes(tensor: TensorBase) -> dict[str, Any]:
    """What the user has attached to a tensor, without the fields of an interpreted TensorBase."""
    found: dict[str, Any] = getattr(tensor, "__dict__", {})
    return {name: value for name, value in found.items() if name not in _FIELDS}


def _rebuild(
    cls: Any,
    host: Any,
    dtype: DType,
    device: Device,
    requires_grad: bool,
    conj: bool = False,
    neg: bool = False,
) -> TensorBase:
    made = instance_of(cls, from_host(host, dtype, device))
    if conj:
        made._keyset = made._keyset | CONJUGATE_BIT
    if neg:
        made._keyset = made._keyset | NEGATIVE_BIT
    if requires_grad:
        materialize_meta(made).requires_grad = True
    return made


def reduce_ex(self: TensorBase, protocol: object) -> Any:
    """For pickle: class, elements, dtype, device, requires_grad, what `conj` has left to be done,
    and the user's attributes.

    The result of unpickling is a leaf.
    """
    requires_grad = needs_grad(self)
    if math_bits(self):
        host = host_array(as_stored(readable(self)))
        bits = (is_conj(self), is_neg(self))
        of_view = (type(self), host, self.dtype, self.device, requires_grad, *bits)
        return (_rebuild, of_view, _attributes(self) or None)
    arguments = (type(self), host_array(self), self.dtype, self.device, requires_grad)
    return (_rebuild, arguments, _attributes(self) or None)


def set_state(self: TensorBase, state: Any) -> None:
    """For pickle: give a tensor its user's attributes; its own fields stay as they are."""
    if not isinstance(state, dict):
        raise TypeError(
            f"Tensor.__setstate__(): expected a dict of attributes, got {type_name(state)}"
        )
    public: Any = self
    public.__dict__.update({name: state[name] for name in state if name not in _FIELDS})


def deepcopy(self: TensorBase, memo: Any) -> TensorBase:
    """For copy.deepcopy: a leaf with its own memory; RuntimeError if `self` is no leaf."""
    if not isinstance(memo, dict):
        raise TypeError(
            f"Tensor.__deepcopy__(): argument 'memo' must be dict, not {type_name(memo)}"
        )
    known = memo.get(id(self))
    if known is not None:
        found: TensorBase = known
        return found
    if grad_fn_of(self) is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment."
        )
    if self._keyset & TRANSFORMS_BIT:
        raise RuntimeError(
            "copy.deepcopy() of a tensor of a function that is being transformed is not supported; "
            "use Tensor.clone()"
        )
    array = resolved(self).array
    copied = cast_array(array, self.device.type, self.dtype, self.device.index or 0)
    result = instance_of(type(self), wrap(copied, self.dtype, self.device))
    memo[id(self)] = result
    meta = self._meta
    if meta is not None:
        own = materialize_meta(result)
        own.requires_grad = meta.requires_grad
        if meta.grad is not None:
            own.grad = copy.deepcopy(meta.grad, memo)
    attributes = _attributes(self)
    if attributes:
        public: Any = result
        public.__dict__.update(copy.deepcopy(attributes, memo))
    return result


def _backend_of(self: TensorBase) -> Any:
    """The backend, whose methods may return numbers and sequences of another library's classes:
    compiled code checks what a method is said to return, unless its object may be anything."""
    return find_backend(self.device.type).backend


def strides(self: TensorBase) -> tuple[int, ...]:
    """Steps in elements from one index to the next, for each dimension."""
    if self._keyset & TRANSFORMS_BIT:
        return _strides_at_level(self)
    if self._keyset & FUNCTIONALIZE_BIT:
        return layout_of(self)[0]
    if self._view_info is not None and 0 in sizes_of(self):
        return _layout_of_nothing(self, self._view_info)[0]
    steps = _backend_of(self).strides(self.array)
    return whole_numbers(steps, self.array)


def _layout_of_nothing(self: TensorBase, view: ViewInfo) -> tuple[tuple[int, ...], int]:
    """Strides and offset of a view without elements, of which arrays of most libraries know
    nothing: those that the same operators give on meta."""
    base = view.base
    array = MetaArray(sizes_of(base), base.dtype, strides(base), storage_offset(base))
    sizes = sizes_of(self)
    try:
        found = replay_on_meta(steps_up_to(view.last), array, base.dtype)
    except Exception:  # a package's view operator without a rule for meta
        return contiguous_strides(sizes), 0
    # A base that had another geometry when the view was made is no help.
    return (found.strides, found.offset) if found.shape == sizes else (contiguous_strides(sizes), 0)


def _strides_at_level(self: TensorBase) -> tuple[int, ...]:
    """Those of what a level's tensor wraps, without the one of the mapped dimension."""
    wrapped: Wrapped = self.array
    steps = strides(wrapped.value)
    dim = wrapped.batch_dim
    return steps if dim < 0 else steps[:dim] + steps[dim + 1 :]


def storage_offset(self: TensorBase) -> int:
    """Where the first element is in the memory that views share, in elements."""
    if self._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = self.array
        return storage_offset(wrapped.value)
    if self._keyset & FUNCTIONALIZE_BIT:
        return layout_of(self)[1]
    if self._view_info is not None and 0 in sizes_of(self):
        return _layout_of_nothing(self, self._view_info)[1]
    place = _backend_of(self).storage_offset(self.array)
    return whole_numbers((place,), self.array)[0]


def is_contiguous(self: TensorBase, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements lie in memory without gaps, in row-major order or that of a format."""
    if memory_format.order:
        return has_format(sizes_of(self), strides(self), memory_format)
    if self._keyset & FUNCTIONALIZE_BIT:
        if is_ordered(self):
            return True
    else:
        array: Any = self.array
        if type(array) is np.ndarray and array.flags.c_contiguous:
            return True
    sizes = sizes_of(self)
    return 0 in sizes or has_format(sizes, strides(self), memory_format)


def dlpack(self: TensorBase, **options: Any) -> Any:
    """A DLPack capsule of the tensor's memory; BufferError if it requires grad.

    `stream`, `max_version`, `dl_device` and `copy` go to the backend's array.
    """
    if needs_grad(self):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._keyset & TRANSFORMS_BIT:
        self = readable(self)
    if self._keyset & MATH_BITS:
        bit = "conjugate" if is_conj(self) else "negative"
        raise BufferError(f"Can't export tensors with the {bit} bit set")
    if WATCH.threads > 0:
        note_read(self)
    return find_backend(self.device.type).backend.to_dlpack(self.array, **options)


def dlpack_device(self: TensorBase) -> Any:
    """DLPack's device type and index."""
    if self._keyset & TRANSFORMS_BIT:
        self = readable(self)
    place = _backend_of(self).dlpack_device(self.array)
    return whole_numbers(place, self.array)


@final
class _CapsuleOwner:
    """Gives a bare DLPack capsule the methods that consumers ask for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DLPACK_CPU, 0)


def from_dlpack(ext_tensor: object, *, device: object = None, copy: Any = None) -> TensorBase:
    """A tensor that shares the memory of another library's array, or of a DLPack capsule.

    Args:
        ext_tensor: an object with `__dlpack__`, or a capsule of host memory.
        device: where the tensor shall be; by default where the memory is.
        copy: True copies, False raises instead of copying; None copies where sharing is impossible.

    Raises:
        TypeError: `ext_tensor` is neither a capsule nor has `__dlpack__`.
        BufferError: no active backend has memory of that kind, or `copy=False` is impossible.

    >>> import numpy, plugrad
    >>> plugrad.from_dlpack(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=plugrad.float64)
    """
    source: Any = ext_tensor
    if type(ext_tensor).__name__ == "PyCapsule":
        source = _CapsuleOwner(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            "from_dlpack(): expected a DLPack capsule or an object with __dlpack__, got "
            f"{type(ext_tensor).__name__}"
        )
    kind, index = source.__dlpack_device__()
    owner = _owner_of_memory(kind)
    wanted = owner.device(index) if device is None else canonical_device(device)
    target = owner if wanted.type == owner.name else find_backend(wanted.type)
    try:
        array = target.backend.from_dlpack(source, wanted.index or 0)
    except BufferError:
        if target is owner or copy is False:
            raise
        # Another library's device: through host memory.
        array = owner.backend.from_dlpack(source, index)
        return from_host(owner.backend.to_host(array), owner.backend.dtype_of(array), wanted)
    if copy is True:
        host = np.array(target.backend.to_host(array))
        return from_host(host, target.backend.dtype_of(array), wanted)
    dtype = numpy_dtype(array) if wanted.type == "cpu" else target.backend.dtype_of(array)
    return wrap(array, dtype, wanted)


def _owner_of_memory(kind: int) -> ActiveBackend:
    """The backend that memory of a DLPack device type belongs to; the host's is the CPU's."""
    if kind == _DLPACK_CPU:
        return find_backend("cpu")
    for active in active_backends():
        if active.backend.dlpack_type() == kind:
            return active
    raise BufferError(
        f"from_dlpack(): no active backend has memory of DLPack device type {kind}; active: "
        f"{', '.join([active.name for active in active_backends()]) or 'none'}. Activate the one "
        "that has, by making a tensor on its device"
    )


def from_numpy(ndarray: object) -> TensorBase:
    """A tensor on the CPU that shares a NumPy array's memory.

    Raises:
        TypeError: `ndarray` is no NumPy array, or its element type is not supported.
        ValueError: negative strides, or foreign byte order.

    >>> import numpy, plugrad
    >>> array = numpy.zeros(2)
    >>> tensor = plugrad.from_numpy(array)
    >>> array[0] = 5
    >>> tensor
    tensor([5., 0.], dtype=plugrad.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        module = getattr(type(ndarray), "__module__", "builtins")
        name = type(ndarray).__name__
        shown = name if module == "builtins" else f"{module}.{name}"
        raise TypeError(f"expected np.ndarray (got {shown})")
    return share_numpy(ndarray, find_backend("cpu").device(None))
