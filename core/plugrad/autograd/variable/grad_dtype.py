"""`Tensor.grad_dtype`: the gradient of a leaf in a dtype that differs from the leaf's."""

from __future__ import annotations

from typing import Any

from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.autograd.variable.properties import dtype_of_grad
from plugrad.dtype import DType
from plugrad.graph.history import grad_fn_of, try_grad_accumulator
from plugrad.tensor.base import ANY_GRAD_DTYPE, TensorBase, materialize_meta
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.cpp_names import CPP_NAMES


def grad_dtype_of(tensor: TensorBase) -> DType | None:
    """The dtype that gradients of a leaf are cast to; None if they are not cast.

    Raises:
        RuntimeError: the tensor is not a leaf.

    >>> import plugrad
    >>> weight = plugrad.ones(2, dtype=plugrad.bfloat16, requires_grad=True)
    >>> weight.grad_dtype
    plugrad.bfloat16
    >>> weight.grad_dtype = plugrad.float32
    >>> (weight * 3).sum().backward()
    >>> weight.grad
    tensor([3., 3.])
    """
    if grad_fn_of(tensor) is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return dtype_of_grad(tensor)


def set_grad_dtype(tensor: TensorBase, value: Any) -> None:
    """Say which dtype gradients of a leaf are cast to; None does not cast them.

    Raises:
        RuntimeError: it is neither a dtype nor None; the tensor is not a leaf, or has a gradient of
            another dtype.
    """
    if value is not None and not isinstance(value, DType):
        raise RuntimeError(
            f"grad_dtype must be a plugrad.dtype or None, but got {type_name(value)}"
        )
    if grad_fn_of(tensor) is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    meta = materialize_meta(tensor)
    if value is None:
        meta.grad_dtype = ANY_GRAD_DTYPE
    else:
        if meta.grad is not None and meta.grad.dtype is not value:
            present = CPP_NAMES[meta.grad.dtype.name]
            raise RuntimeError(
                f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a "
                f"gradient with dtype '{present}'. Please clear the gradient "
                "(.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches "
                "the existing gradient's dtype."
            )
        meta.grad_dtype = value.index + 1
    accumulator = try_grad_accumulator(tensor)
    if isinstance(accumulator, AccumulateGradBase):
        accumulator.update_grad_dtype()
