"""`torch._dynamo._trace_wrapped_higher_order_op`: a mode for `x[i]` inside `vmap`."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Self

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(ContextDecorator):
    """A block in which `x[i]` with a tensor `i` of shape () does not read its value.

    PyTorch's `vmap` needs it. plugrad's does not: in it, `x[i]` always accepts a batched `i`.

    >>> import plugrad
    >>> x = plugrad.arange(4.0)
    >>> with TransformGetItemToIndex():
    ...     plugrad.vmap(lambda i: x[i])(plugrad.tensor([2, 0]))
    tensor([2., 0.])
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None
