"""Making tensors from data: Python numbers, nested sequences, NumPy arrays, tensors, buffers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dtype import (
    FLOATING,
    DType,
    bool_,
    complex128,
    float64,
    get_default_dtype,
    int64,
)
from plugrad.tensor.base import TensorBase, detached, materialize_meta, needs_grad, wrap
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, override_call
from plugrad.tensor.calls.promotion import (
    cast_array,
    convert_array,
    is_scalar,
    result_type,
    stored_scalar,
)
from plugrad.tensor.creation.nested import (
    array_of,
    is_sequence,
    plain_data,
    scalar_type,
    sequence_array,
)
from plugrad.tensor.interop.arrays import (
    from_host,
    from_numpy,
    host_array,
    numpy_dtype,
    plain_view,
    share_numpy,
)
from plugrad.tensor.interop.dlpack import from_dlpack
from plugrad.tensor.interop.values import item
from plugrad.tensor.math_bits import resolved

__all__ = ["as_tensor", "asarray", "from_numpy", "scalar_tensor", "tensor"]

_PYTHON_TYPES: Final[dict[object, DType]] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def dtype_argument(dtype: object, function: str) -> DType | None:
    """A `dtype=` argument: None, a DType, or the Python type bool, int, float or complex."""
    if dtype is None:
        return None
    if isinstance(dtype, DType):
        return dtype
    found = _PYTHON_TYPES.get(dtype) if isinstance(dtype, type) else None
    if found is None:
        raise TypeError(
            f"{function}(): argument 'dtype' must be plugrad.dtype, not {type(dtype).__name__}"
        )
    return found


def require_grad(tensor: TensorBase) -> TensorBase:
    """Make a new tensor a leaf that requires grad; RuntimeError for bools and integers."""
    if tensor.dtype.category < FLOATING:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    materialize_meta(tensor).requires_grad = True
    return tensor


def _seen_by_mode(function: Any, data: object, **options: object) -> Any:
    """What a mode makes of a call of a factory, which no class of its arguments overrides."""
    given = {name: value for name, value in options.items() if value is not None}
    return override_call(function, (), (data,), given)


def _host_data(data: object, dtype: DType | None) -> tuple[Any, DType]:
    """Fresh host memory with the data, and its dtype."""
    if type(data) is list:
        plain = plain_data(data, dtype)
        if plain is not None:
            return plain
    if isinstance(data, (bool, int, float, complex)):
        wanted = scalar_type(data) if dtype is None else dtype
        return array_of([data], wanted).reshape(()), wanted
    if isinstance(data, np.ndarray):
        found = numpy_dtype(data)
        wanted = found if dtype is None else dtype
        return convert_array(plain_view(data), found, wanted), wanted
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, (list, tuple, type)) and hasattr(data, "__array__"):
        # A column of a table: its own dtype, and no element for element.
        return _host_data(np.asarray(data), dtype)
    if is_sequence(data):
        array = sequence_array(data, dtype)
        return array, numpy_dtype(array) if dtype is None else dtype
    if not is_scalar(data) and hasattr(data, "__dlpack__"):
        return _host_data(host_array(from_dlpack(data)), dtype)
    wanted = scalar_type(data) if dtype is None else dtype
    return array_of([data], wanted).reshape(()), wanted


def tensor(
    data: object,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
) -> Any:
    """A new leaf tensor with a copy of `data`.

    Args:
        data: a number, nested sequences of numbers, a NumPy array or scalar, a tensor, or an object
            with `__dlpack__`.
        dtype: by default the dtype of `data`: Python ints become int64, floats the default dtype.
        device: by default the current default device.
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: sequences of different lengths at the same level, or nested too deep.
        TypeError: elements that are not numbers.
        RuntimeError: a dtype cannot be inferred, or a number does not fit the dtype.

    >>> import plugrad
    >>> plugrad.tensor([[1, 2], [3, 4.5]])
    tensor([[1.0000, 2.0000],
            [3.0000, 4.5000]])
    """
    if OVERRIDES.active:
        handled = _seen_by_mode(
            tensor, data, dtype=dtype, device=device, requires_grad=requires_grad
        )
        if handled is not PROCEED:
            return handled
    wanted = dtype_argument(dtype, "tensor")
    if isinstance(data, TensorBase):
        warn_at_caller(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than plugrad.tensor(sourceTensor)."
        )
        target = data.device if device is None else canonical_device(device)
        kind = data.dtype if wanted is None else wanted
        if target is data.device:
            made = wrap(
                cast_array(resolved(data)._backend_array, target.type, kind, target.index or 0),
                kind,
                target,
            )
        else:
            made = from_host(convert_array(host_array(data), data.dtype, kind), kind, target)
    else:
        array, kind = _host_data(data, wanted)
        made = from_host(array, kind, canonical_device(device))
    return require_grad(made) if requires_grad else made


def scalar_tensor(
    s: object,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
) -> Any:
    """A 0-dim tensor with one number; of the default dtype even for an int.

    >>> import plugrad
    >>> plugrad.scalar_tensor(3)
    tensor(3.)
    """
    if OVERRIDES.active:
        handled = _seen_by_mode(
            scalar_tensor, s, dtype=dtype, device=device, requires_grad=requires_grad
        )
        if handled is not PROCEED:
            return handled
    if isinstance(s, TensorBase):
        s = item(s)
    if not is_scalar(s):
        raise TypeError(
            f"scalar_tensor(): argument 's' (position 1) must be Number, not {type(s).__name__}"
        )
    if not isinstance(s, (int, float, complex)):
        public: Any = s
        s = public.item()  # NumPy's bool is not an int of Python's
    wanted = dtype_argument(dtype, "scalar_tensor")
    kind = get_default_dtype() if wanted is None else wanted
    array = array_of([stored_scalar(s, kind)], kind).reshape(())
    made = from_host(array, kind, canonical_device(device))
    return require_grad(made) if requires_grad else made


def as_tensor(data: object, dtype: object = None, device: object = None) -> Any:
    """`data` as a tensor, without a copy if it is one already or a NumPy array that fits.

    A tensor keeps its place in the graph; with the same dtype and device it is returned itself.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> plugrad.as_tensor(x) is x
    True
    """
    if OVERRIDES.active:
        handled = _seen_by_mode(as_tensor, data, dtype=dtype, device=device)
        if handled is not PROCEED:
            return handled
    wanted = dtype_argument(dtype, "as_tensor")
    if isinstance(data, TensorBase):
        return _moved(data, wanted, device)
    target = canonical_device(device)
    if isinstance(data, np.ndarray) and (wanted is None or numpy_dtype(data) is wanted):
        return share_numpy(data, target)
    array, kind = _host_data(data, wanted)
    return from_host(array, kind, target)


def _moved(data: TensorBase, dtype: DType | None, device: object) -> TensorBase:
    """`data.to(device, dtype)`, or `data` itself if no change is needed."""
    kind = data.dtype if dtype is None else dtype
    target = data.device if device is None else canonical_device(device)
    if kind is data.dtype and target is data.device:
        return data
    public: Any = data
    moved: TensorBase = public.to(device=target, dtype=kind)
    return moved


def asarray(
    obj: object,
    *,
    dtype: object = None,
    device: object = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:
    """`obj` as a tensor; shares memory if possible, unless `copy` is True.

    Args:
        obj: a tensor, NumPy array, DLPack object or capsule, buffer (read as `dtype`), number or
            nested sequence.
        dtype: by default the dtype of `obj`.
        device: by default the device of `obj`, or the default device.
        copy: True always copies, False never, None if necessary.
        requires_grad: None keeps what a tensor has, False detaches it.

    Raises:
        ValueError: `copy` is False and memory cannot be shared.

    >>> import plugrad
    >>> plugrad.asarray(bytearray([1, 2]), dtype=plugrad.uint8)
    tensor([1, 2], dtype=plugrad.uint8)
    """
    if OVERRIDES.active:
        handled = _seen_by_mode(
            asarray, obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad
        )
        if handled is not PROCEED:
            return handled
    wanted = dtype_argument(dtype, "asarray")
    shared = obj if isinstance(obj, TensorBase) else _shared(obj, wanted)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        array, kind = _host_data(obj, wanted)
        result = from_host(array, kind, canonical_device(device))
    else:
        if copy is False:
            _check_alias(shared, wanted, device)
        result = _moved(shared, wanted, device)
        if copy and result is shared:
            public: Any = shared
            result = public.clone()
    if requires_grad is False and needs_grad(result):
        return detached(result)
    return require_grad(result) if requires_grad and not needs_grad(result) else result


def _check_alias(source: TensorBase, dtype: DType | None, device: object) -> None:
    if device is not None and canonical_device(device) is not source.device:
        raise ValueError(
            f"can't alias tensor from device '{source.device}' to '{canonical_device(device)}'."
        )
    if dtype is not None and dtype is not source.dtype:
        raise ValueError(
            f"can't alias tensor with dtype '{source.dtype.scalar_name}' into dtype "
            f"'{dtype.scalar_name}'."
        )


def _shared(obj: object, dtype: DType | None) -> TensorBase | None:
    """A tensor on the memory of an array or a buffer; None if `obj` is neither."""
    if isinstance(obj, np.generic):
        return from_numpy(np.array(obj))
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    try:
        view = memoryview(obj)  # type: ignore[arg-type]  # raises if it is not a buffer
    except TypeError:
        return None
    kind = get_default_dtype() if dtype is None else dtype
    if view.nbytes % kind.itemsize != 0:
        raise ValueError(
            f"buffer length ({view.nbytes} bytes) after offset (0 bytes) must be a multiple of "
            f"element size ({kind.itemsize})"
        )
    return share_numpy(np.frombuffer(view, dtype=kind.numpy), canonical_device("cpu"))


def tensor_first(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands, with the first one made a tensor if it is a number.

    It has the dtype in which the operation computes, so it promotes like a number.
    """
    if len(operands) < 2 or not is_scalar(operands[0]):
        return operands
    number, other = operands[0], operands[1]
    if not isinstance(other, TensorBase) and not is_scalar(other):
        return scalar_tensor(number), *operands[1:]  # the second one is refused
    device = other.device if isinstance(other, TensorBase) else None
    dtype: Any = result_type(number, other)
    return scalar_tensor(number, dtype=dtype, device=device), *operands[1:]
