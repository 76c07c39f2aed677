"""Batching rules of operators that compute each element from the elements at the same place.

With the batch's dimension first, broadcasting does all the work. Only promotion needs care: a
tensor without logical dimensions has one in its array, and would be promoted like a tensor with
dimensions.
"""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad.dispatch.keys import COMPOSITE_IMPLICIT_AUTOGRAD
from plugrad.dispatch.operator import Operator
from plugrad.dtype import DType, promote_types
from plugrad.memory_format import contiguous_format
from plugrad.ops.batching.dims import (
    aligned,
    check_written,
    for_one,
    logical_rank,
    moved,
    padded,
)
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import combine_categories

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Rule = Callable[..., tuple[Any, Any]]


def pointwise(call: Callable[..., Any], promoted: slice = slice(None)) -> Rule:
    """The rule of an operator that broadcasts its tensors.

    Args:
        promoted: which of the arguments have a common dtype.
    """

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        values, dim = _arranged(args, in_dims, promoted)
        return call(*values), dim

    return rule


def pointwise_in_place(call: Callable[..., Any], promoted: slice = slice(None)) -> Rule:
    """The rule of an operator that writes into its first tensor, to which others are broadcast."""

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        check_written(in_dims[0])
        rank = logical_rank(args[0], in_dims[0])
        for index, value in enumerate(args):
            if isinstance(value, TensorBase) and logical_rank(args[index], in_dims[index]) > rank:
                for_one(call, in_dims, args)
        values, _ = _arranged(args, in_dims, promoted, written=True)
        call(*values)
        return args[0], in_dims[0]

    return rule


def _arranged(
    args: tuple[Any, ...], in_dims: tuple[Any, ...], promoted: slice, written: bool = False
) -> tuple[list[Any], int]:
    """The arguments as the operator takes them for the whole batch, and where its dimension is.

    Args:
        promoted: which of the arguments have a common dtype.
        written: the first one is written into, so that it is a view whatever its dtype.
    """
    values = list(args)
    places = [index for index, value in enumerate(args) if isinstance(value, TensorBase)]
    tensors = [args[index] for index in places]
    dims = [in_dims[index] for index in places]
    ranks = {len(sizes_of(tensor)) for tensor in tensors}
    if len(ranks) == 1 and len(set(dims)) == 1:
        # Nothing to do, not even for promotion: all operands are in one category.
        return values, dims[0]
    for index, tensor in zip(places, aligned(tensors, dims), strict=True):
        values[index] = tensor
    chosen = [index for index in range(len(args))[promoted] if index in places]
    if len({args[index].dtype for index in chosen}) > 1:
        wanted = _common_dtype([(args[index], in_dims[index]) for index in chosen])
        if wanted is not _common_dtype([(values[index], None) for index in chosen]):
            for index in chosen[written:]:
                values[index] = C.call__to_copy(values[index], wanted, None)
    return values, 0


def _common_dtype(operands: list[tuple[Tensor, int | None]]) -> DType | None:
    """What tensors are promoted to, by their logical dimensions."""
    dimensioned: DType | None = None
    zero_dim: DType | None = None
    for tensor, dim in operands:
        dtype = tensor.dtype
        if logical_rank(tensor, dim) > 0:
            dimensioned = dtype if dimensioned is None else promote_types(dimensioned, dtype)
        else:
            zero_dim = dtype if zero_dim is None else promote_types(zero_dim, dtype)
    return combine_categories(dimensioned, zero_dim, None)


def clone(
    info: Any, in_dims: tuple[Any, ...], self: Tensor, memory_format: Any
) -> tuple[Tensor, int]:
    """A copy in which every element of the batch is contiguous."""
    if memory_format is contiguous_format:
        return C.call_clone(moved(self, in_dims[0], 0), memory_format), 0
    if memory_format is not None and memory_format.order:
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format "
            "plugrad.preserve_format or plugrad.contiguous_format (got "
            f"{memory_format.cpp_name})"
        )
    return C.call_clone(self, memory_format), in_dims[0]


def contiguous(
    info: Any, in_dims: tuple[Any, ...], self: Tensor, memory_format: Any
) -> tuple[Tensor, int]:
    if memory_format is not contiguous_format:
        raise RuntimeError(
            "NYI: Tensor.contiguous(...) inside of vmap for memory_format other than "
            "plugrad.contiguous_format"
        )
    return C.call_contiguous(moved(self, in_dims[0], 0), memory_format), 0


def fill_with_tensor(
    info: Any, in_dims: tuple[Any, ...], self: Tensor, value: Tensor
) -> tuple[Tensor, int]:
    """Each element of the batch is filled with its own number."""
    self_dim, value_dim = in_dims
    if value_dim is None:
        return C.call_fill__Tensor(self, value), self_dim
    check_written(self_dim, "fill_")
    if logical_rank(value, value_dim):
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{logical_rank(value, value_dim)} dimensions."
        )
    C.call_copy_(moved(self, self_dim, 0), padded(value, value_dim, logical_rank(self, self_dim)))
    return self, self_dim


def frexp(info: Any, in_dims: tuple[Any, ...], self: Tensor) -> tuple[Any, Any]:
    return tuple(C.call_frexp_Tensor(self)), (in_dims[0], in_dims[0])


# By full name, or by base name for all overloads; operators in place have the same without "_".
_NAMES: Final = frozenset([
    "_conj", "_neg_view", "_to_copy", "_to_device", "addcdiv", "addcmul", "alias", "angle",
    "clamp", "clamp_max", "clamp_min", "complex", "copy", "detach", "div", "elu",
    "elu_backward", "fill.Scalar", "gelu", "gelu_backward", "hardtanh", "hardtanh_backward",
    "imag", "leaky_relu", "leaky_relu_backward", "lerp", "log_sigmoid", "logit", "nan_to_num",
    "native_dropout_backward", "round", "rsub.Scalar", "sigmoid_backward", "silu", "silu_backward",
    "softplus", "softplus_backward", "tanh_backward", "threshold", "threshold_backward", "where",
    "zero",
    "hardshrink", "hardshrink_backward", "softshrink", "softshrink_backward",
    "_dirichlet_grad", "_standard_gamma_grad",
])  # fmt: skip
# Composites that a backend may have kernels for; they are mapped as one operator so that the kernel
# runs.
_WHOLE: Final = frozenset([
    "celu", "copysign", "deg2rad", "hardsigmoid", "hardswish", "isneginf", "isposinf", "isreal",
    "ldexp", "logaddexp2", "logit", "mish", "rad2deg", "relu6", "selu", "sinc", "square",
    "xlogy",
])  # fmt: skip
_STRUCTURES: Final = frozenset(["unary", "binary", "binary_alpha", "elementwise"])
# Which tensors are promoted together where it is not all of them: a condition is not, and where
# dtypes have to agree, or a result is cast to what is written, none are.
_PROMOTED: Final = {"where": slice(1, None), "lerp": slice(0), "copy": slice(0)}

RULES: Final[dict[str, Rule]] = {
    "clone": clone,
    "contiguous": contiguous,
    "fill_.Tensor": fill_with_tensor,
    "frexp.Tensor": frexp,
}


def rule_for(op: Operator) -> Rule | None:
    """The rule of an operator that is computed element by element: one of these names, or one, a
    plugin's too, that the core promotes and broadcasts for.

    It calls the operator itself one level further out, so that a backend's kernel for it runs.
    """
    alias = op.schema.arguments[0].type.alias if op.schema.arguments else None
    in_place = alias is not None and alias.is_write
    name = op.name.removesuffix("_") if in_place else op.name
    if op.namespace == "plugrad" and op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD) is not None:
        return pointwise(_caller(op)) if op.name in _WHOLE else None
    if op.structure not in _STRUCTURES and (
        op.namespace != "plugrad" or (name not in _NAMES and f"{name}.{op.overload}" not in _NAMES)
    ):
        return None

    call = _caller(op)
    promoted = _PROMOTED.get(name, slice(None))
    return pointwise_in_place(call, promoted) if in_place else pointwise(call, promoted)


def _caller(op: Operator) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return op.call(args)

    return call
