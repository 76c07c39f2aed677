"""A tensor's properties in the graph: `requires_grad`, `grad`, `is_leaf`, `data`."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import WATCH, current_state
from plugrad.dtype import ALL_DTYPES, DType
from plugrad.graph.former_geometry import restart
from plugrad.graph.history import grad_fn_of, has_grad_fn
from plugrad.tensor.aliasing.functionalize import take_over
from plugrad.tensor.base import (
    ANY_GRAD_DTYPE,
    OWN_GRAD_DTYPE,
    TensorBase,
    is_inference,
    keyset_without_tangent,
    make_tensor,
    materialize_meta,
    note_alias,
    note_grad,
    share_storage,
    sizes_of,
)
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.levels import in_transform

META: Final = "meta"


def is_leaf(tensor: TensorBase) -> bool:
    """Whether the tensor is a leaf: no recorded operator made it, so `grad_fn` is None.

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> x.is_leaf, (x * 2).is_leaf, (x * 2).detach().is_leaf
    (True, False, True)
    """
    return grad_fn_of(tensor) is None


def set_requires_grad(tensor: TensorBase, value: Any) -> None:
    """Assign `requires_grad` of a leaf.

    Raises:
        RuntimeError: the tensor is not a leaf, or of a dtype that has no gradient.
    """
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    if has_grad_fn(tensor):
        _refuse_non_leaf(value)
    if value and not tensor.dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    _mark_leaf(tensor, value)


def requires_grad_(tensor: TensorBase, value: Any) -> None:
    """`Tensor.requires_grad_`; a non-leaf that requires grad already accepts True.

    Raises:
        TypeError: `value` is not a bool.
        RuntimeError: False for a non-leaf, or a dtype that has no gradient.
    """
    if not isinstance(value, bool):
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
            f"{type_name(value)}"
        )
    if in_transform():
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using "
            "plugrad.autograd.functional.* APIs) inside of a function being transformed by a "
            "plugrad.func transform. This is unsupported, please attempt to use the plugrad.func "
            "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."
        )
    if has_grad_fn(tensor):
        if not value:
            _refuse_non_leaf(value)
        return
    if value and not tensor.dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    _mark_leaf(tensor, value)


def _refuse_non_leaf(value: bool) -> NoReturn:
    hint = ""
    if not value:
        hint = (
            " If you want to use a computed variable in a subgraph that doesn't require "
            "differentiation use var_no_grad = var.detach()."
        )
    raise RuntimeError("you can only change requires_grad flags of leaf variables." + hint)


def _mark_leaf(tensor: TensorBase, value: bool) -> None:
    if value and is_inference(tensor) and not current_state().inference_mode:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    if value or tensor._autograd_meta is not None:
        materialize_meta(tensor).requires_grad = value


def dtype_of_grad(tensor: TensorBase) -> DType | None:
    """The dtype that a gradient of the tensor has; None if it may have any."""
    meta = tensor._autograd_meta
    if meta is None or meta.grad_dtype == OWN_GRAD_DTYPE:
        return tensor.dtype
    return None if meta.grad_dtype == ANY_GRAD_DTYPE else ALL_DTYPES[meta.grad_dtype - 1]


def set_grad(tensor: TensorBase, value: Any) -> None:
    """Assign `.grad`.

    Raises:
        TypeError: neither a Tensor nor None.
        RuntimeError: it is the tensor itself, or of another shape, dtype or device.
    """
    if WATCH.threads > 0:
        note_grad(tensor)
    if value is None:
        if tensor._autograd_meta is not None:
            tensor._autograd_meta.grad = None
        return
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}"
        )
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = dtype_of_grad(tensor)
    if wanted is not None and value.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{CPP_NAMES[value.dtype.name]}' to a "
            f"tensor with grad_dtype '{wanted.scalar_name}'. The gradient must match the tensor's "
            "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    if value.device is not tensor.device:
        raise RuntimeError(
            f"attempting to assign a gradient located on device {value.device} to a tensor "
            f"located on device {tensor.device}"
        )
    if sizes_of(value) != sizes_of(tensor):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(sizes_of(value))}' to a tensor of "
            f"size '{list(sizes_of(tensor))}'. Please ensure that the gradient and the tensor are "
            "the same size"
        )
    materialize_meta(tensor).grad = value


def data_of(tensor: TensorBase) -> TensorBase:
    """The same memory as a tensor outside the graph. Prefer `detach()`: it shares the version
    counter, so backward notices writes to a saved tensor; writes to `.data` are not noticed.

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> _ = x.data.mul_(3)
    >>> x
    tensor([3., 3.], requires_grad=True)
    """
    keyset = keyset_without_tangent(tensor)
    result = make_tensor(tensor._backend_array, tensor.dtype, tensor.device, keyset)
    result._keyset = keyset
    if tensor._shared_storage is not None:
        share_storage(result)  # writes check whether elements share memory, as in expanded views
    note_alias(result, tensor)
    return result


def refuse_deletion(tensor: TensorBase) -> None:
    """`del tensor.data` and the like.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("Deleting tensor attributes is not allowed; they can only be assigned to")


def set_grad_fn(tensor: TensorBase, value: Any) -> None:
    """`tensor._grad_fn = None` cuts the tensor out of the graph.

    Raises:
        RuntimeError: something else is assigned.
    """
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    detach_(tensor)


def set_data(tensor: TensorBase, value: Any) -> None:
    """Assign `.data`: the tensor takes over another one's array; the graph does not notice.

    Dtype, shape and device may change. The tensor keeps its version counter: later writes to
    `value` change its elements, but not its version.

    Raises:
        TypeError: not a Tensor.
        RuntimeError: integers for a tensor that requires grad; one of the two has no data (meta).
    """
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {type_name(value)}")
    if value.device.type != tensor.device.type and META in (value.device.type, tensor.device.type):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
            "incompatible tensor type."
        )
    meta = tensor._autograd_meta
    if meta is not None:
        if meta.requires_grad and not value.dtype.is_differentiable:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype"
            )
        if value.dtype is not tensor.dtype or value.device is not tensor.device:
            # It expects gradients of the former dtype and device.
            meta.accumulator = None
    same_kind = value.dtype is tensor.dtype and value.device is tensor.device
    take_over(tensor, value)
    if tensor._view_info is not None and same_kind:
        restart(tensor, tensor._view_info)
    tensor.dtype = value.dtype
    tensor.device = value.device
    # A dual tensor stays one.
    tensor._keyset = keyset_without_tangent(value) | tensor._keyset & FORWARD_AD_BIT


def detach_(tensor: TensorBase) -> None:
    """Cut a tensor out of the graph in place; nothing happens in inference mode.

    Raises:
        RuntimeError: it is a view.
    """
    if current_state().inference_mode or is_inference(tensor):
        return
    if tensor._view_info is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    meta = tensor._autograd_meta
    if meta is not None:
        meta.grad_fn = None
        meta.output_nr = 0
        meta.requires_grad = False
        meta.tangent = None
        tensor._keyset = keyset_without_tangent(tensor)


def grad_of(tensor: TensorBase) -> Any:
    """`.grad`, with PyTorch's warning where it can only be None.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    >>> x.grad is None
    True
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    meta = tensor._autograd_meta
    if meta is None:
        return None
    if meta.grad is None and meta.grad_fn is not None and not meta.retains_grad:
        warn_at_caller(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
            ".grad attribute won't be populated during autograd.backward(). If you indeed want "
            "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
            "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
            "the leaf Tensor instead.",
        )
    return meta.grad


def make_leaf(cls: Any, tensor: TensorBase, requires_grad: bool) -> TensorBase:
    """A leaf of class `cls` that shares the tensor's array: what `nn.Parameter` is."""
    keyset = keyset_without_tangent(tensor)
    made = make_tensor(tensor._backend_array, tensor.dtype, tensor.device, keyset)
    # Calling `cls` would recurse, because its constructor calls this.
    setattr(made, "__class__", cls)  # noqa: B010  # native code knows no assignment to __class__
    made._keyset = keyset
    made._shared_storage = share_storage(tensor)
    note_alias(made, tensor)
    if requires_grad:
        set_requires_grad(made, True)
    return made


def output_nr(tensor: TensorBase) -> int:
    """Which output of its grad_fn a tensor is; 0 for a leaf.

    >>> import plugrad
    >>> first, second = plugrad.ones(2, requires_grad=True).unbind()
    >>> first.output_nr, second.output_nr
    (0, 1)
    """
    return 0 if tensor._autograd_meta is None else int(tensor._autograd_meta.output_nr)
