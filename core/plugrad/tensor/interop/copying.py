"""Copies of tensors: `pickle`, `copy.deepcopy`, and the same array in another class."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad.device import Device
from plugrad.dispatch.keys import CONJUGATE_BIT, NEGATIVE_BIT, TRANSFORMS_BIT
from plugrad.dtype import DType
from plugrad.graph.history import grad_fn_of
from plugrad.tensor.base import (
    TensorBase,
    empty_shell,
    keyset_without_tangent,
    materialize_meta,
    needs_grad,
    wrap,
)
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.promotion import cast_array
from plugrad.tensor.interop.arrays import from_host, host_array
from plugrad.tensor.levels import readable
from plugrad.tensor.math_bits import as_stored, is_conj, is_neg, math_bits, resolved

_FIELDS: Final = frozenset(
    [
        "_backend_array",
        "dtype",
        "device",
        "_keyset",
        "_autograd_meta",
        "_shared_storage",
        "_view_info",
        "_known_sizes",
    ]
)


def instance_of(cls: Any, source: TensorBase) -> TensorBase:
    """A tensor of class `cls` around the array of `source`, or `source` if it is one.

    The constructor of a subclass is the user's and stays out of it.
    """
    if cls is type(source):
        return source
    made = empty_shell(cls)
    made._backend_array = source._backend_array
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
    """For copy.deepcopy: a leaf with its own memory; RuntimeError if `self` is not a leaf."""
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
    array = resolved(self)._backend_array
    copied = _copied_with_its_memory(array, memo)
    if copied is None:
        copied = cast_array(array, self.device.type, self.dtype, self.device.index or 0)
    result = instance_of(type(self), wrap(copied, self.dtype, self.device))
    import copy  # here it is loaded, since it calls

    memo[id(self)] = result
    meta = self._autograd_meta
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


def _copied_with_its_memory(array: Any, memo: dict[Any, Any]) -> Any:
    """A copy of an array of NumPy, in a copy of all of the memory that it is a part of.

    So tensors that share memory do so afterwards. None for other arrays, and for memory with gaps.
    """
    if not isinstance(array, np.ndarray):
        return None
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    key = ("plugrad memory", id(owner))
    if key not in memo:
        memory = owner.ravel("K").view(np.uint8).copy() if _is_dense(owner) else None
        # The owner stays alive, and so its id its own.
        memo[key] = (owner, memory)
    memory = memo[key][1]
    if memory is None:
        return None
    start = _address(array) - _address(owner)
    return np.ndarray(array.shape, array.dtype, memory, start, array.strides)


def _address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _is_dense(array: Any) -> bool:
    """Whether the elements fill their memory from its beginning."""
    return bool(array.size) and bool(array.flags.c_contiguous or array.flags.f_contiguous)
