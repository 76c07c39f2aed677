"""Batching rules of views: each gives a view, so that a write to it reaches the batch."""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad.dtype import DType
from plugrad.ops.batching.dims import (
    for_one,
    logical_rank,
    logical_sizes,
    moved,
    padded,
    physical,
    place,
)
from plugrad.ops.prepare import views as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.aliasing.layout import storage_offset as storage_offset_of
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.aliasing.strides import reach
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Rule = Callable[..., tuple[Any, Any]]
Dims = tuple[Any, ...]
Sizes = tuple[int, ...]


def _in_another_shape(call: Callable[..., Any]) -> Rule:
    def rule(info: Any, in_dims: Dims, self: Tensor, size: Sizes) -> tuple[Any, Any]:
        # Inferred here, because -1 must not include the batch dimension.
        whole = prepare.infer_size(tuple(size), math.prod(logical_sizes(self, in_dims[0])))
        return call(moved(self, in_dims[0], 0), (info.batch_size, *whole)), 0

    return rule


def permute(info: Any, in_dims: Dims, self: Tensor, dims: Sizes) -> tuple[Any, Any]:
    rank = logical_rank(self, in_dims[0])
    order = prepare.check_dims(tuple(dims), rank, "permute(sparse_coo)")
    places = [place(dim, in_dims[0]) for dim in order]
    return C.call_permute(self, (in_dims[0], *places)), 0


def transpose(info: Any, in_dims: Dims, self: Tensor, dim0: int, dim1: int) -> tuple[Any, Any]:
    rank = logical_rank(self, in_dims[0])
    first, second = wrap_dim(dim0, rank), wrap_dim(dim1, rank)
    if rank == 0:
        return C.call_alias(self), in_dims[0]
    turned = C.call_transpose_int(self, place(first, in_dims[0]), place(second, in_dims[0]))
    return turned, in_dims[0]


def t(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
    rank = logical_rank(self, in_dims[0])
    if rank > 2:
        for_one(C.call_t, in_dims, (self,))
    return transpose(info, (in_dims[0], None, None), self, 0, rank - 1 if rank else 0)


def _ones(self: Tensor, batch_dim: int, dims: Any) -> Sizes:
    """The given logical dimensions, or all, that have size 1, counted with the batch dimension."""
    sizes = logical_sizes(self, batch_dim)
    chosen = range(len(sizes)) if dims is None else [wrap_dim(dim, len(sizes)) for dim in dims]
    if len(set(chosen)) < len(chosen):
        repeated = next(dim for dim in chosen if list(chosen).count(dim) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return tuple([place(dim, batch_dim) for dim in chosen if sizes and sizes[dim] == 1])


def _without(self: Tensor, batch_dim: int, dims: Any) -> tuple[Any, Any]:
    gone = _ones(self, batch_dim, dims)
    place_then = batch_dim - len([dim for dim in gone if dim < batch_dim])
    return C.call_squeeze_dims(self, gone), place_then


def squeeze(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
    return _without(self, in_dims[0], None)


def squeeze_dim(info: Any, in_dims: Dims, self: Tensor, dim: int) -> tuple[Any, Any]:
    return _without(self, in_dims[0], (dim,))


def squeeze_dims(info: Any, in_dims: Dims, self: Tensor, dim: Sizes) -> tuple[Any, Any]:
    return _without(self, in_dims[0], dim)


def unsqueeze(info: Any, in_dims: Dims, self: Tensor, dim: int) -> tuple[Any, Any]:
    batch_dim: int = in_dims[0]
    wrapped = wrap_dim(dim, logical_rank(self, batch_dim) + 1)
    if wrapped <= batch_dim:
        return C.call_unsqueeze(self, wrapped), batch_dim + 1
    return C.call_unsqueeze(self, wrapped + 1), batch_dim


def expand(info: Any, in_dims: Dims, self: Tensor, size: Sizes, implicit: bool) -> tuple[Any, Any]:
    added = len(size) - logical_rank(self, in_dims[0])
    if added < 0 or any(length < 0 for length in size[:added]):
        for_one(C.call_expand, (in_dims[0], None, None), (self, size, implicit))
    front = padded(self, in_dims[0], len(size))
    return C.call_expand(front, (info.batch_size, *size), implicit), 0


def view_as_real(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
    return C.call_view_as_real(self), in_dims[0]


def view_dtype(info: Any, in_dims: Dims, self: Tensor, dtype: DType) -> tuple[Any, Any]:
    if logical_rank(self, in_dims[0]) == 0 and self.dtype.itemsize != dtype.itemsize:
        for_one(C.call__view_dtype, (in_dims[0], None), (self, dtype))
    return C.call__view_dtype(moved(self, in_dims[0], 0), dtype), 0


def view_as_complex(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
    if logical_rank(self, in_dims[0]) == 0:
        for_one(C.call_view_as_complex, in_dims, (self,))
    return C.call_view_as_complex(moved(self, in_dims[0], 0)), 0


def _along(call: Callable[..., Any]) -> Rule:
    """The rule of operators with `int dim` after the tensor that return one or several views."""

    def rule(info: Any, in_dims: Dims, self: Tensor, dim: int, *rest: Any) -> tuple[Any, Any]:
        rank = logical_rank(self, in_dims[0])
        if rank == 0:
            for_one(call, (in_dims[0], None, *in_dims[2:]), (self, dim, *rest))
        found = call(moved(self, in_dims[0], 0), physical(dim, rank), *rest)
        return found, [0] * len(found) if isinstance(found, (tuple, list)) else 0

    return rule


def _split(call: Callable[..., Any]) -> Rule:
    def rule(info: Any, in_dims: Dims, self: Tensor, sizes: Any, dim: int) -> tuple[Any, Any]:
        rank = logical_rank(self, in_dims[0])
        if rank == 0:
            for_one(call, (in_dims[0], None, None), (self, sizes, dim))
        parts = call(moved(self, in_dims[0], 0), sizes, physical(dim, rank))
        return parts, [0] * len(parts)

    return rule


def diagonal(
    info: Any, in_dims: Dims, self: Tensor, offset: int, dim1: int, dim2: int
) -> tuple[Any, Any]:
    first, second = prepare.diagonal_dims(logical_rank(self, in_dims[0]), dim1, dim2)
    return C.call_diagonal(moved(self, in_dims[0], 0), offset, first + 1, second + 1), 0


def unfold(
    info: Any, in_dims: Dims, self: Tensor, dimension: int, size: int, step: int
) -> tuple[Any, Any]:
    rank = logical_rank(self, in_dims[0])
    front = moved(self, in_dims[0], 0)
    if rank:
        return C.call_unfold(front, physical(dimension, rank), size, step), 0
    wrap_dim(dimension, 0)
    windows = C.call_unfold(C.call_unsqueeze(front, 1), 1, size, step)
    return C.call_select_int(windows, 1, 0), 0


def select_backward(
    info: Any, in_dims: Dims, grad: Tensor, input_sizes: Sizes, dim: int, index: int
) -> tuple[Any, Any]:
    place_of_dim = physical(dim, len(input_sizes))
    sizes = (info.batch_size, *input_sizes)
    return C.call_select_backward(moved(grad, in_dims[0], 0), sizes, place_of_dim, index), 0


def slice_backward(
    info: Any, in_dims: Dims, grad: Tensor, input_sizes: Sizes, dim: int, *bounds: Any
) -> tuple[Any, Any]:
    place_of_dim = physical(dim, len(input_sizes))
    sizes = (info.batch_size, *input_sizes)
    return C.call_slice_backward(moved(grad, in_dims[0], 0), sizes, place_of_dim, *bounds), 0


def diagonal_backward(
    info: Any,
    in_dims: Dims,
    grad: Tensor,
    input_sizes: Sizes,
    offset: int,
    dim1: int,
    dim2: int,
) -> tuple[Any, Any]:
    first, second = prepare.diagonal_dims(len(input_sizes), dim1, dim2)
    sizes = (info.batch_size, *input_sizes)
    front = moved(grad, in_dims[0], 0)
    return C.call_diagonal_backward(front, sizes, offset, first + 1, second + 1), 0


def as_strided(
    info: Any,
    in_dims: Dims,
    self: Tensor,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
    input_stride: Sizes,
    input_offset: int,
) -> tuple[Any, Any]:
    """The same geometry for each element of the batch, from where it is in memory.

    Raises:
        RuntimeError: it would reach what belongs to other elements only, or to none.
    """
    front = moved(self, in_dims[0], 0)
    own, start = strides(front), storage_offset_of(front)
    if own[1:] != tuple(input_stride) or start != input_offset:
        raise RuntimeError(
            "vmap: as_strided of a tensor with other strides than it had is not supported, please "
            "try to rewrite the `as_strided` call as a sequence of plugrad view operations"
        )
    prepare.check_geometry(tuple(size), tuple(stride), storage_offset)
    _check_reach(sizes_of(front)[1:], own[1:], start, size, stride, storage_offset)
    geometry = ((info.batch_size, *size), (own[0], *stride), storage_offset)
    return C.call__as_strided(front, *geometry, own, start), 0


def _check_reach(
    sizes: Sizes, own: Sizes, start: int, size: Sizes, stride: Sizes, offset: int
) -> None:
    """RuntimeError if a geometry leaves the memory from the first to the last element of its
    tensor."""
    if 0 in size:
        return
    end, reached = reach(sizes, own, start), reach(size, stride, offset)
    if reached > end or offset < start:
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory "
            f"outside of `tensor`. `result` can access some memory in range [{offset}, {reached}], "
            f"but `tensor` can only access some memory in range [{start}, {end}]. This is not "
            "supported inside of vmap, please try to rewrite the `as_strided` call as a sequence "
            "of plugrad view operations"
        )


RULES: Final[dict[str, Rule]] = {
    "_view_dtype": view_dtype,
    "_as_strided": as_strided,
    "_unsafe_view": _in_another_shape(C.call__unsafe_view),
    "diagonal": diagonal,
    "diagonal_backward": diagonal_backward,
    "expand": expand,
    "permute": permute,
    "reshape": _in_another_shape(C.call_reshape),
    "select.int": _along(C.call_select_int),
    "select_backward": select_backward,
    "slice.Tensor": _along(C.call_slice_Tensor),
    "slice_backward": slice_backward,
    "split.Tensor": _split(C.call_split_Tensor),
    "split_with_sizes": _split(C.call_split_with_sizes),
    "squeeze": squeeze,
    "squeeze.dim": squeeze_dim,
    "squeeze.dims": squeeze_dims,
    "t": t,
    "transpose.int": transpose,
    "unbind.int": _along(C.call_unbind_int),
    "unfold": unfold,
    "unsafe_split.Tensor": _split(C.call_unsafe_split_Tensor),
    "unsafe_split_with_sizes": _split(C.call_unsafe_split_with_sizes),
    "unsqueeze": unsqueeze,
    "view": _in_another_shape(C.call_view),
    "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
}
