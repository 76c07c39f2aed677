"""The second operand of an infix operator when it is neither a tensor nor a number.

A NumPy array counts as a tensor on the CPU; objects that override functions get the call.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import promote_types
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.overridable import accept_foreign, override_operator
from plugrad.tensor.interop.arrays import from_host, numpy_dtype, plain_view

# The operators with the tensor as their second operand, by the name of the method.
_REVERSE: Final[dict[str, Any]] = {
    "__rsub__": operator.sub,
    "__rtruediv__": operator.truediv,
    "__rfloordiv__": operator.floordiv,
    "__rmod__": operator.mod,
    "__rpow__": operator.pow,
    "__rlshift__": operator.lshift,
    "__rrshift__": operator.rshift,
}


def foreign_operand(name: str, tensor: Any, other: Any) -> Any:
    """The result of an infix operator if the other operand is neither a Tensor nor a number. It is
    a Tensor only if a program calls a reflected method itself."""
    if isinstance(other, TensorBase):
        turned = _REVERSE.get(name)
        return NotImplemented if turned is None else turned(other, tensor)
    if accept_foreign(other):
        return override_operator(name, tensor, other)
    operand = operand_of_array(tensor, other)
    if operand is other:
        return NotImplemented
    if name == "matmul":
        return promoted_matmul(tensor, operand)
    if name == "__rmatmul__":
        return promoted_matmul(operand, tensor)
    reverse = _REVERSE.get(name)
    if reverse is not None:
        return reverse(operand, tensor)
    return getattr(tensor, name)(operand)


def promoted_matmul(first: Any, second: Any) -> Any:
    """The matrix product; NumPy promotes, while PyTorch requires two tensors of one dtype."""
    kind = promote_types(first.dtype, second.dtype)
    return first.to(kind) @ second.to(kind)


def tensor_of_array(array: Any, copied: bool) -> TensorBase:
    """A NumPy array that is an operand with a tensor, as a tensor on the CPU.

    Args:
        copied: whether it has memory of its own. A node that saves it would not notice what NumPy
            writes to the array.

    Raises:
        TypeError: no dtype of plugrad is the array's.
    """
    given: Any = array
    if not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    elif copied or any(step < 0 or step % given.itemsize != 0 for step in given.strides):
        given = np.array(given, order="C")
    dtype = numpy_dtype(given)
    return from_host(plain_view(given), dtype, find_backend("cpu").device(None))


def operand_of_array(tensor: TensorBase, other: object) -> object:
    """`other`, or a tensor in its place if it is a NumPy array; `tensor` is the first operand."""
    if not isinstance(other, np.ndarray):
        return other
    return tensor_of_array(other, needs_grad(tensor) and current_state().grad_enabled)
