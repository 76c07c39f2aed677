"""Splits batches into microbatches, and merges results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """The dimension along which a tensor is split and parts are joined.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import TensorChunkSpec, split_args_kwargs_into_chunks
    >>> columns = [TensorChunkSpec(1)]
    >>> args, _ = split_args_kwargs_into_chunks((plugrad.ones(5, 4),), None, 2, columns)
    >>> [part.shape for part, in args]
    [plugrad.Size([5, 2]), plugrad.Size([5, 2])]
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"


def _parts(value: Any, spec: Any, chunks: int, name: str) -> list[Any]:
    """A value for each microbatch: parts of a tensor, or of the tensors in a container; otherwise
    the value itself."""
    if isinstance(value, Tensor):
        dim = 0 if spec is None else spec.split_dim
        if value.ndim == 0:
            return [value] * chunks
        if value.shape[dim] < chunks:
            raise ValueError(
                f"{name} must have at least {chunks} elements along dimension {dim}, one for each "
                f"microbatch, got {value.shape[dim]}"
            )
        return list(value.tensor_split(chunks, dim))
    if isinstance(value, Mapping):
        split = {key: _parts(item, spec, chunks, f"{name}[{key!r}]") for key, item in value.items()}
        return [{key: items[n] for key, items in split.items()} for n in range(chunks)]
    if isinstance(value, list | tuple):
        lists = [_parts(item, spec, chunks, f"{name}[{n}]") for n, item in enumerate(value)]
        return [type(value)(items[n] for items in lists) for n in range(chunks)]
    return [value] * chunks


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Sequence[TensorChunkSpec | None] | None = None,
    kwargs_chunk_spec: Mapping[str, TensorChunkSpec | None] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The arguments of each microbatch. Tensors are split along the first dimension, or their
    spec's; other values are the same for all.

    Raises:
        ValueError: a tensor has fewer rows than there are microbatches.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import split_args_kwargs_into_chunks
    >>> args, kwargs = split_args_kwargs_into_chunks((plugrad.arange(4), "mean"), {"scale": 2}, 2)
    >>> args
    [(tensor([0, 1]), 'mean'), (tensor([2, 3]), 'mean')]
    >>> kwargs
    [{'scale': 2}, {'scale': 2}]
    """
    specs = list(args_chunk_spec or [None] * len(args))
    if len(specs) != len(args):
        raise ValueError(
            f"args_chunk_spec must have an entry for each of the {len(args)} arguments, got "
            f"{len(specs)}"
        )
    lists = [
        _parts(value, spec, chunks, f"argument {n}")
        for n, (value, spec) in enumerate(zip(args, specs, strict=True))
    ]
    named = {
        key: _parts(value, (kwargs_chunk_spec or {}).get(key), chunks, f"argument {key!r}")
        for key, value in (kwargs or {}).items()
    }
    return (
        [tuple(items[n] for items in lists) for n in range(chunks)],
        [{key: items[n] for key, items in named.items()} for n in range(chunks)],
    )


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any = None) -> Any:
    """Merge the results of microbatches: concatenate tensors along the first dimension or the
    spec's, or stack tensors without dimensions; containers entry by entry.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import merge_chunks
    >>> merge_chunks([plugrad.ones(1, 3), plugrad.zeros(2, 3)]).shape
    plugrad.Size([3, 3])
    >>> merge_chunks([plugrad.tensor(1.0), plugrad.tensor(2.0)])
    tensor([1., 2.])
    """
    first = chunks[0]
    if isinstance(first, Tensor):
        if first.ndim == 0:
            return plugrad.stack(list(chunks))
        return plugrad.cat(list(chunks), 0 if chunk_spec is None else chunk_spec.split_dim)
    if isinstance(first, Mapping):
        return {key: merge_chunks([chunk[key] for chunk in chunks], chunk_spec) for key in first}
    if isinstance(first, list | tuple):
        merged = (merge_chunks(items, chunk_spec) for items in zip(*chunks, strict=True))
        return type(first)(merged)
    return first
