"""Where a batch's dimension is in a tensor, and how rules bring it to the front.

A tensor's *logical* dimensions are those that the mapped function sees; its array has one more, at
the place that `in_dims` gives. Arguments such as `dim=-1` count the logical ones.
"""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad.dtype import DType
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def logical_rank(tensor: Tensor, dim: int | None) -> int:
    """How many dimensions the mapped function sees."""
    return len(sizes_of(tensor)) - (dim is not None)


def logical_sizes(tensor: Tensor, dim: int | None) -> tuple[int, ...]:
    """The shape that the mapped function sees."""
    sizes = sizes_of(tensor)
    return sizes if dim is None else (*sizes[:dim], *sizes[dim + 1 :])


def moved(tensor: Tensor, source: int, destination: int) -> Tensor:
    """A view with one dimension moved; the tensor itself if the dimension is in place already."""
    ndim = len(sizes_of(tensor))
    source, destination = source % ndim, destination % ndim
    if source == destination:
        return tensor
    order = [dim for dim in range(ndim) if dim != source]
    order.insert(destination, source)
    return C.call_permute(tensor, tuple(order))


def to_front(tensor: Tensor, dim: int | None) -> Tensor:
    """A view with the batch dimension first; a tensor that is not mapped stays as it is."""
    return tensor if dim is None else moved(tensor, dim, 0)


def spread(tensor: Tensor, dim: int | None, batch_size: int) -> Tensor:
    """A view with the batch dimension first; a tensor that is not mapped is repeated."""
    if dim is not None:
        return moved(tensor, dim, 0)
    return C.call_expand(tensor, (batch_size, *sizes_of(tensor)), False)


def padded(tensor: Tensor, dim: int | None, rank: int) -> Tensor:
    """A view with the batch's dimension first and as many logical dimensions as requested.

    New ones of length 1 are inserted before the existing ones, as in broadcasting. What is
    not mapped stays as it is: broadcasting does the same for it.
    """
    if dim is None:
        return tensor
    front = moved(tensor, dim, 0)
    for _ in range(rank - logical_rank(tensor, dim)):
        front = C.call_unsqueeze(front, 1)
    return front


def aligned(tensors: Sequence[Tensor], dims: Sequence[int | None]) -> list[Tensor]:
    """Views that broadcast with each other as the logical tensors do, the batch's dimension first.

    Shapes: mapped [*, B, *] of k logical dimensions -> [B, 1, ..., 1, *], where there are as many
    dimensions after B as the tensor with the most has; what is not mapped stays as it is.
    """
    rank = max(logical_rank(*pair) for pair in zip(tensors, dims, strict=True))
    return [padded(tensor, dim, rank) for tensor, dim in zip(tensors, dims, strict=True)]


def cast(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor in a dtype. By an operator, because a graph may record it."""
    return tensor if tensor.dtype is dtype else C.call__to_copy(tensor, dtype, None)


def physical(dim: int, rank: int) -> int:
    """A logical dimension, counted from either end, in a tensor with the batch's one first.

    IndexError, in PyTorch's words, if a tensor of `rank` logical dimensions has none such.
    """
    return wrap_dim(dim, rank) + 1


def physical_dims(dims: Iterable[int], rank: int) -> tuple[int, ...]:
    """`physical` of each of several dimensions."""
    return tuple([wrap_dim(dim, rank) + 1 for dim in dims])


def place(dim: int, batch_dim: int) -> int:
    """The position, counted from the front, of a logical dimension in a batched tensor."""
    return dim if dim < batch_dim else dim + 1


def first_of(value: Any, dim: int | None) -> Any:
    """What the mapped function sees for the first element of the batch, or would see, if the batch
    has none."""
    if dim is None:
        return value
    if sizes_of(value)[dim] == 0:
        return C.call_new_zeros(value, logical_sizes(value, dim))
    return C.call_select_int(value, dim, 0)


def for_one(call: Callable[..., Any], in_dims: Sequence[Any], args: Sequence[Any]) -> Any:
    """Run an operator on the first element of the batch, to raise its error."""
    return call(*[first_of(value, dim) for value, dim in zip(args, in_dims, strict=True)])


def check_written(written_dim: int | None, name: str = "inplace arithmetic") -> None:
    """RuntimeError if an operator in place would write a batch into a tensor that is not mapped."""
    if written_dim is None:
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor "
            "`other` in extra_args that has more elements than `self`. This happened due to "
            "`other` being vmapped over but `self` not being vmapped over in a vmap. Please try "
            f"to use out-of-place operators instead of {name}. If said operator is being called "
            "inside the plugrad framework, please file a bug report instead."
        )


def all_at_front(output: Any) -> Any:
    """`out_dims` for one or several results that all have the batch's dimension first."""
    return [0] * len(output) if isinstance(output, (tuple, list)) else 0
