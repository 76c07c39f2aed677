"""ReduceOp: how ranks reduce their tensors."""

from __future__ import annotations

import enum

__all__ = ["ReduceOp"]


class ReduceOp(enum.Enum):
    """The reduction of `all_reduce`, `reduce` and `reduce_scatter`.

    `AVG` is the sum divided by the number of ranks. `BAND`, `BOR` and `BXOR` are for integers and
    bools.

    >>> import plugrad, plugrad.distributed as dist
    >>> def largest():
    ...     x = plugrad.tensor([float(dist.get_rank())])
    ...     dist.all_reduce(x, dist.ReduceOp.MAX)
    ...     return x.item()
    >>> dist.run_ranks(largest, 3)
    [2.0, 2.0, 2.0]
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    @staticmethod
    def named(op: ReduceOp | str) -> ReduceOp:
        """The member for a member, its name or its value: ``"sum"``, ``"SUM"``.

        Raises:
            ValueError: there is none.

        >>> import plugrad.distributed as dist
        >>> dist.ReduceOp.named("SUM")
        <ReduceOp.SUM: 'sum'>
        """
        if isinstance(op, ReduceOp):
            return op
        if isinstance(op, str):
            found = _BY_NAME.get(op.lower())
            if found is not None:
                return found
        raise ValueError(
            f"op must be a ReduceOp or one of {', '.join(map(repr, _BY_NAME))}, got {op!r}"
        )


_BY_NAME = {op.value: op for op in ReduceOp}
