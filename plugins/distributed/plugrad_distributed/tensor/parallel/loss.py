"""loss_parallel: cross entropy of logits with classes sharded over the ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from plugrad_distributed.tensor.kernels import implicit_replication

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which `cross_entropy` of DTensor logits accepts plain tensors as targets, equal on
    all ranks. Call `backward` inside as well.

    Logits that are sharded along the classes are never gathered, inside or outside the block: ranks
    exchange a maximum and two sums for each sample.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> from plugrad.distributed.tensor.parallel import loss_parallel
    >>> def loss():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     logits = distribute_tensor(plugrad.zeros(2, 4), mesh, [Shard(1)])
    ...     with loss_parallel():
    ...         return plugrad.nn.functional.cross_entropy(logits, plugrad.tensor([1, 3])).item()
    >>> round(dist.run_ranks(loss, 2)[0], 4)
    1.3863
    """
    with implicit_replication():
        yield
