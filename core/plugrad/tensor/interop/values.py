"""Converts tensors to Python numbers, lists and containers: the bodies of Tensor's methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dtype import INTEGER, bfloat16
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of, tensor_class
from plugrad.tensor.calls.kernel_failures import allocation_failed
from plugrad.tensor.calls.promotion import is_scalar
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.levels import readable


def _number(host: Any) -> Any:
    """The Python number in an array with one element."""
    value: Any = host.item()
    if type(value) is float:
        return value
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
    """The value of a tensor with one element, as a Python number.

    Raises:
        RuntimeError: the tensor has no element or more than one, or is on the device "meta".

    >>> import plugrad
    >>> plugrad.tensor([1.5]).item()
    1.5
    """
    host = _readable(self)
    try:
        return _number(host)
    except ValueError:
        if host.size == 1:
            raise
        raise RuntimeError(
            f"a Tensor with {host.size} elements cannot be converted to Scalar"
        ) from None


def tolist(self: TensorBase) -> Any:
    """The elements as nested lists of Python numbers; one number if there are no dimensions."""
    host = host_array(self)
    try:
        if self.dtype is bfloat16 or self.dtype.is_float8:
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
        warn_at_caller(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            "behavior.\nConsider using tensor.detach() first."
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
