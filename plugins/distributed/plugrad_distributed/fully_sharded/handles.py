"""UnshardHandle: parameters that are being gathered."""

from __future__ import annotations

from plugrad_distributed.fully_sharded.group import ParameterGroup

__all__ = ["UnshardHandle"]


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` returns.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import fully_shard
    >>> def whole():
    ...     layer = fully_shard(plugrad.nn.Linear(3, 4))
    ...     handle = layer.unshard(async_op=True)
    ...     # Compute something else here.
    ...     handle.wait()
    ...     return layer.weight.shape
    >>> dist.run_ranks(whole, 2)[0]
    plugrad.Size([4, 3])
    """

    def __init__(self, group: ParameterGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the parameters are gathered and set in the module."""
        group, self._group = self._group, None
        if group is not None:
            group.wholes()
            group.show()
