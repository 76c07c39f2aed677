"""Each rank sends a part to every rank: `all_to_all`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.arrays import empty_like, readable, scattered, writable
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.calls import (
    check_list,
    check_tensor,
    described,
    finished,
    in_terms_of,
    is_watched,
    member,
    over,
)
from plugrad_distributed.groups.work import Work

__all__ = ["all_to_all", "all_to_all_single", "split_counts"]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send part r of `input` to rank r, and write the part from rank r to part r of `output`.

    Args:
        output_split_sizes: the sizes of the parts of `output` along the first dimension; by default
            all are equal. `input_split_sizes` are the same for the input.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     out = plugrad.empty(2)
    ...     rank = dist.get_rank()
    ...     dist.all_to_all_single(out, plugrad.tensor([10.0 * rank, 10.0 * rank + 1]))
    ...     return out
    >>> dist.run_ranks(program, 2)
    [tensor([ 0., 10.]), tensor([ 1., 11.])]
    """
    out = check_tensor(output, "all_to_all_single", "output")
    tensor = check_tensor(input, "all_to_all_single", "input")
    ranks = member(group, "all_to_all_single")
    if ranks is None:
        return None
    if out.dtype != tensor.dtype:
        raise TypeError(
            f"all_to_all_single(): output and input must have one dtype, got {out.dtype} and "
            f"{tensor.dtype}"
        )
    out_counts = split_counts("output", out, output_split_sizes, ranks.size())
    in_counts = split_counts("input", tensor, input_split_sizes, ranks.size())
    what = described("all_to_all_single", tensor)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.all_to_all_single(
                tensor, output_split_sizes, input_split_sizes, ranks
            )
        return in_terms_of(found, out, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    array, (buffer, written) = readable(carrier, tensor), writable(carrier, out)
    even = output_split_sizes is None and input_split_sizes is None
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(
            buffer, array, None if even else out_counts, None if even else in_counts
        ),
        written,
        [out],
        alike=even or f"all_to_all_single({tensor.dtype}, of several sizes)",
    )
    return finished(work, async_op)


def split_counts(
    argument: str, tensor: Tensor, sizes: Sequence[int] | None, ranks: int
) -> list[int]:
    """How many elements each part of a tensor has.

    Raises:
        ValueError: the parts do not make up the tensor's first dimension.
    """
    if tensor.ndim == 0:
        raise ValueError(f"all_to_all_single(): {argument} must have a dimension at least")
    length = tensor.shape[0]
    each = tensor.numel() // length if length else 0
    if not sizes:
        if length % ranks:
            raise ValueError(
                f"all_to_all_single(): the first dimension of {argument} must be divisible by the "
                f"{ranks} ranks, got {length}"
            )
        return [length // ranks * each] * ranks
    if len(sizes) != ranks or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"all_to_all_single(): {argument}_split_sizes must be {ranks} sizes with the sum "
            f"{length}, got {list(sizes)}"
        )
    return [int(size) * each for size in sizes]


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send the r-th tensor of a list to rank r, and write the tensor from rank r to the r-th tensor
    of another list. Tensors may differ in size.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     outs = [plugrad.empty(1), plugrad.empty(1)]
    ...     rank = dist.get_rank()
    ...     dist.all_to_all(outs, list(plugrad.tensor([10.0 * rank, 10.0 * rank + 1]).split(1)))
    ...     return outs
    >>> dist.run_ranks(program, 2)[1]
    [tensor([1.]), tensor([11.])]
    """
    ranks = member(group, "all_to_all")
    if ranks is None:
        return None
    outs = check_list(output_tensor_list, "all_to_all", "output_tensor_list", ranks.size())
    inputs = check_list(input_tensor_list, "all_to_all", "input_tensor_list", ranks.size())
    first = inputs[0]
    for tensor in (*outs, *inputs):
        if tensor.dtype != first.dtype:
            raise TypeError(
                f"all_to_all(): all tensors must have one dtype, got {first.dtype} and "
                f"{tensor.dtype}"
            )
    what = f"all_to_all({first.dtype})"
    in_counts, out_counts = [x.numel() for x in inputs], [x.numel() for x in outs]
    with plugrad.no_grad():
        whole = plugrad.cat([tensor.reshape(-1) for tensor in inputs])
    if any(map(is_watched, (*inputs, *outs))):
        with plugrad.no_grad():
            found = functional.all_to_all_single(whole, out_counts, in_counts, ranks)
            for out, part in zip(outs, found.split(out_counts), strict=True):
                out.copy_(part.reshape(out.shape))
        return finished(over(ranks, what, outs), async_op)
    carrier = ranks.carrier(first.device.type)
    array = readable(carrier, whole)
    buffer = empty_like(array, (sum(out_counts),))
    ends = list(itertools.accumulate(out_counts, initial=0))
    parts = [buffer[a:b] for a, b in itertools.pairwise(ends)]
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(buffer, array, out_counts, in_counts),
        scattered(parts, outs, carrier),
        outs,
    )
    return finished(work, async_op)
