"""Batching rules of reductions, and of softmax, which also works along one dimension."""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad.ops.batching.dims import (
    all_at_front,
    for_one,
    logical_rank,
    logical_sizes,
    moved,
    physical,
    spread,
)
from plugrad.ops.prepare.reductions import reduces_nothing, wrap_dims

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Rule = Callable[..., tuple[Any, Any]]
Dims = tuple[Any, ...]


def _over_dims(call: Callable[..., Any], dim_at: int, keepdim_at: int | None) -> Rule:
    """The rule of an operator with `int[1]? dim`, where none given means all.

    Args:
        dim_at, keepdim_at: where the arguments are in the schema.
    """

    def rule(info: Any, in_dims: Dims, self: Tensor, *rest: Any) -> tuple[Any, Any]:
        args = [moved(self, in_dims[0], 0), *rest]
        rank = logical_rank(self, in_dims[0])
        dims = wrap_dims(args[dim_at], rank)
        if rank == 0:
            # An empty list would mean all dimensions, the batch's too.
            _give_dimension(args, dim_at, (1,), keepdim_at)
        else:
            args[dim_at] = tuple([dim + 1 for dim in dims])
        found = call(*args)
        return found, all_at_front(found)

    return rule


def _logical(call: Callable[..., Any]) -> Rule:
    """The rule of `any` and `all`, where an empty list means no dimension, not even the batch's."""
    over_dims = _over_dims(call, 1, 2)

    def rule(info: Any, in_dims: Dims, self: Tensor, dim: Any, keepdim: bool) -> tuple[Any, Any]:
        if reduces_nothing(dim):
            return call(self, dim, keepdim), in_dims[0]
        return over_dims(info, in_dims, self, dim, keepdim)

    return rule


def _over_dim(call: Callable[..., Any], keepdim_at: int | None) -> Rule:
    """The rule of an operator with `int dim` after its tensor, or `int? dim`, where None is all."""

    def rule(info: Any, in_dims: Dims, self: Tensor, *rest: Any) -> tuple[Any, Any]:
        front = moved(self, in_dims[0], 0)
        args = [front, *rest]
        sizes = logical_sizes(self, in_dims[0])
        dim = args[1]
        kept = keepdim_at is not None and args[keepdim_at]
        if not sizes:
            if dim is not None:
                physical(dim, 0)
            _give_dimension(args, 1, 1, keepdim_at)
        elif dim is None:
            args[0] = C.call_reshape(front, (info.batch_size, math.prod(sizes)))
            args[1] = 1
            if keepdim_at is not None:
                args[keepdim_at] = False
        else:
            args[1] = physical(dim, len(sizes))
        found = call(*args)
        if dim is None and kept and sizes:
            ones = (info.batch_size,) + (1,) * len(sizes)
            if isinstance(found, tuple):
                found = tuple([C.call_view(item, ones) for item in found])
            else:
                found = C.call_view(found, ones)
        return found, all_at_front(found)

    return rule


def _give_dimension(args: list[Any], dim_at: int, dim: Any, keepdim_at: int | None) -> None:
    """Have a tensor without logical dimensions reduced over one of length 1."""
    args[0] = C.call_unsqueeze(args[0], 1)
    args[dim_at] = dim
    if keepdim_at is not None:
        args[keepdim_at] = False


def _extremum(call: Callable[..., Any], over_dims: Callable[..., Any]) -> Rule:
    """The rule of `max` and `min` of all elements; their gradients are the same as for `amax` and
    `amin`."""

    def rule(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
        rank = logical_rank(self, in_dims[0])
        if rank == 0:
            return C.call_clone(self), in_dims[0]
        if 0 in logical_sizes(self, in_dims[0]):
            for_one(call, in_dims, (self,))
        return over_dims(moved(self, in_dims[0], 0), tuple(range(1, rank + 1))), 0

    return rule


def _softmax(call: Callable[..., Any], tensors: int) -> Rule:
    """The rule of operators with `int dim` after one or two tensors of one shape, which they
    keep."""

    def rule(info: Any, in_dims: Dims, *args: Any) -> tuple[Any, Any]:
        rank = logical_rank(args[0], in_dims[0])
        fronts = [
            spread(tensor, dim, info.batch_size)
            for tensor, dim in zip(args[:tensors], in_dims, strict=False)
        ]
        if rank == 0:
            fronts = [C.call_unsqueeze(tensor, 1) for tensor in fronts]
        found = call(*fronts, physical(args[tensors], rank), *args[tensors + 1 :])
        return (found if rank else C.call_squeeze_dim(found, 1)), 0

    return rule


def trace(info: Any, in_dims: Dims, self: Tensor) -> tuple[Any, Any]:
    if logical_rank(self, in_dims[0]) != 2:
        for_one(C.call_trace, in_dims, (self,))
    diagonals = C.call_diagonal(moved(self, in_dims[0], 0), 0, 1, 2)
    return C.call_sum(diagonals, (1,)), 0


RULES: Final[dict[str, Rule]] = {
    "_log_softmax": _softmax(C.call__log_softmax, 1),
    "_log_softmax_backward_data": _softmax(C.call__log_softmax_backward_data, 2),
    "_softmax": _softmax(C.call__softmax, 1),
    "_softmax_backward_data": _softmax(C.call__softmax_backward_data, 2),
    "all": _logical(C.call_all),
    "amax": _over_dims(C.call_amax, 1, 2),
    "amin": _over_dims(C.call_amin, 1, 2),
    "aminmax": _over_dim(C.call_aminmax, 2),
    "any": _logical(C.call_any),
    "argmax": _over_dim(C.call_argmax, 2),
    "argmin": _over_dim(C.call_argmin, 2),
    "count_nonzero": _over_dims(C.call_count_nonzero, 1, None),
    "linalg_vector_norm": _over_dims(C.call_linalg_vector_norm, 2, 3),
    "logsumexp": _over_dims(C.call_logsumexp, 1, 2),
    "max": _extremum(C.call_max, C.call_amax),
    "max.dim": _over_dim(C.call_max_dim, 2),
    "mean": _over_dims(C.call_mean, 1, 2),
    "min": _extremum(C.call_min, C.call_amin),
    "min.dim": _over_dim(C.call_min_dim, 2),
    "nansum": _over_dims(C.call_nansum, 1, 2),
    "prod": _over_dim(C.call_prod, 2),
    "std.correction": _over_dims(C.call_std_correction, 1, 3),
    "std_mean.correction": _over_dims(C.call_std_mean_correction, 1, 3),
    "sum": _over_dims(C.call_sum, 1, 2),
    "trace": trace,
    "var.correction": _over_dims(C.call_var_correction, 1, 3),
    "var_mean.correction": _over_dims(C.call_var_mean_correction, 1, 3),
}
