"""Buckets: gradients that are concatenated in one tensor and reduced together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = ["FIRST_BUCKET_BYTES", "Bucket", "GradBucket", "assign_buckets"]

# The first bucket is small: its reduction starts early in the backward pass.
FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """The argument of a communication hook: the concatenated gradients of some parameters.

    >>> import plugrad, plugrad.distributed as dist
    >>> weight = plugrad.nn.Parameter(plugrad.ones(2, 2))
    >>> bucket = dist.GradBucket(0, plugrad.arange(4.0), [weight], True)
    >>> bucket.gradients()
    [tensor([[0., 1.],
            [2., 3.]])]
    """

    def __init__(
        self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool
    ) -> None:
        self._index = index
        self._buffer = buffer
        self._parameters = list(parameters)
        self._is_last = is_last

    def index(self) -> int:
        """Its index among the buckets of the backward pass, in the order of reduction.

        >>> import plugrad, plugrad.distributed as dist
        >>> def hook(seen, bucket):
        ...     seen.append((bucket.index(), bucket.is_last()))
        ...     work = dist.all_reduce(bucket.buffer(), dist.ReduceOp.AVG, async_op=True)
        ...     return work.get_future().then(lambda done: done.value()[0])
        >>> def program():
        ...     seen = []
        ...     net = plugrad.nn.Sequential(plugrad.nn.Linear(4, 4), plugrad.nn.Linear(4, 4))
        ...     net = plugrad.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1e-5)
        ...     net.register_comm_hook(seen, hook)
        ...     net(plugrad.ones(1, 4)).sum().backward()
        ...     return seen
        >>> dist.run_ranks(program, 2)[0]
        [(0, False), (1, False), (2, False), (3, True)]
        """
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as one tensor of one dimension.

        >>> import plugrad, plugrad.distributed as dist
        >>> weights = [plugrad.zeros(2, 2), plugrad.zeros(1)]
        >>> dist.GradBucket(0, plugrad.arange(5.0), weights, True).buffer()
        tensor([0., 1., 2., 3., 4.])
        """
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the tensor, for example by one of another dtype.

        >>> import plugrad, plugrad.distributed as dist
        >>> bucket = dist.GradBucket(0, plugrad.ones(4), [plugrad.zeros(2, 2)], True)
        >>> bucket.set_buffer(bucket.buffer().to(plugrad.bfloat16))
        >>> bucket.gradients()[0].dtype
        plugrad.bfloat16
        """
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients in the buffer.

        >>> import plugrad, plugrad.distributed as dist
        >>> weight, bias = plugrad.zeros(2, 2), plugrad.zeros(1)
        >>> bucket = dist.GradBucket(0, plugrad.arange(5.0), [weight, bias], True)
        >>> [parameter.shape for parameter in bucket.parameters()]
        [plugrad.Size([2, 2]), plugrad.Size([1])]
        """
        return list(self._parameters)

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer in the shapes of their parameters.

        >>> import plugrad, plugrad.distributed as dist
        >>> weights = [plugrad.zeros(2), plugrad.zeros(2)]
        >>> bucket = dist.GradBucket(0, plugrad.arange(4.0), weights, True)
        >>> _ = bucket.gradients()[1].zero_()
        >>> bucket.buffer()
        tensor([0., 1., 0., 0.])
        """
        return views(self._buffer, self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last bucket of the backward pass.

        >>> import plugrad, plugrad.distributed as dist
        >>> dist.GradBucket(0, plugrad.ones(1), [plugrad.zeros(1)], is_last=True).is_last()
        True
        """
        return self._is_last

    def __repr__(self) -> str:
        return (
            f"<GradBucket {self._index}: {len(self._parameters)} gradients, "
            f"{self._buffer.numel()} elements of {self._buffer.dtype}>"
        )


def views(flat: Tensor, parameters: Iterable[Tensor]) -> list[Tensor]:
    """Consecutive parts of a tensor, in the shapes of parameters."""
    found, start = [], 0
    for parameter in parameters:
        end = start + parameter.numel()
        found.append(flat[start:end].view(parameter.shape))
        start = end
    return found


class Bucket:
    """A bucket of a reducer.

    Attributes:
        indices: the indices of its parameters in the reducer.
        parameters: these.
        flat: their gradients, concatenated, in the dtype in which they are reduced.
        views: the parts of `flat`, in the shapes of the parameters.
        pending: the number of gradients still to come in this backward pass.
        future: the future of the reduction, once it has started.
    """

    def __init__(
        self, indices: Sequence[int], parameters: Sequence[Tensor], dtype: Any = None
    ) -> None:
        self.indices = list(indices)
        self.parameters = list(parameters)
        first = self.parameters[0]
        total = sum(parameter.numel() for parameter in self.parameters)
        if dtype is None or not first.is_floating_point():
            dtype = first.dtype
        with plugrad.no_grad():
            self.flat: Tensor = plugrad.zeros(total, dtype=dtype, device=first.device)
            self.views = views(self.flat, self.parameters)
        self.pending = len(self.indices)
        self.future: Any = None

    def gather(self) -> None:
        """Copy the gradients to the bucket. A parameter without one adds zeros."""
        for parameter, view in zip(self.parameters, self.views, strict=True):
            grad = parameter.grad
            if grad is None:
                view.zero_()
            elif grad is not view:
                view.copy_(grad)

    def fill(self, result: Tensor) -> None:
        """Take the result of the reduction, which may be another tensor than the bucket's."""
        if result is not self.flat:
            self.flat.copy_(result.reshape(-1))

    def hand_out(self, position: int, as_view: bool) -> None:
        """Give a parameter its reduced gradient."""
        parameter, view = self.parameters[position], self.views[position]
        grad = parameter.grad
        if grad is view:
            return
        if as_view and view.dtype == parameter.dtype:
            parameter.grad = view
        elif grad is None:
            parameter.grad = view.to(parameter.dtype, copy=True)
        else:
            grad.copy_(view)


def assign_buckets(
    parameters: Sequence[Tensor], order: Sequence[int], limits: Sequence[int]
) -> list[list[int]]:
    """Lists of indices, one for each bucket, of parameters with the same dtype and device.

    Args:
        order: the indices of the parameters, in the order in which gradients arrive.
        limits: the bytes after which a bucket is full, for the first bucket of a dtype and device,
            the second and so on; the last limit holds for all further ones.
    """
    found: list[list[int]] = []
    open_: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    made: dict[Any, int] = {}
    for index in order:
        parameter = parameters[index]
        key = parameter.dtype, parameter.device
        open_.setdefault(key, []).append(index)
        sizes[key] = sizes.get(key, 0) + parameter.numel() * parameter.element_size()
        if sizes[key] >= limits[min(made.get(key, 0), len(limits) - 1)]:
            found.append(open_.pop(key))
            sizes[key] = 0
            made[key] = made.get(key, 0) + 1
    # Buckets that are complete first are reduced first.
    place = {index: position for position, index in enumerate(order)}
    found += open_.values()
    return sorted(found, key=lambda bucket: place[bucket[-1]])
