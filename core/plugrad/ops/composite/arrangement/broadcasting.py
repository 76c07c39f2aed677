"""Broadcasting as public functions that take any number of shapes or tensors."""

from __future__ import annotations

from typing import Any

from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls import broadcasting
from plugrad.tensor.calls.arguments import int_list_argument
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, accept_foreign, override_call
from plugrad.tensor.size import Size, as_size


def broadcast_tensors(*tensors: Any) -> Any:
    """Tensors expanded to their common shape, in a tuple; also of one list of tensors.

    One that has that shape is given back itself.

    Raises RuntimeError if their shapes do not broadcast.

    >>> import plugrad
    >>> [t.shape for t in plugrad.broadcast_tensors(plugrad.ones(2, 1), plugrad.ones(3))]
    [plugrad.Size([2, 3]), plugrad.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if OVERRIDES.active:
        handled = override_call(broadcast_tensors, tensors, tensors, {})
        if handled is not PROCEED:
            return handled
    shape: tuple[int, ...] = ()
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorBase):
            if accept_foreign(tensor):
                return override_call(broadcast_tensors, tensors, tensors, {})
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got "
                f"{type(tensor).__name__}"
            )
        shape = broadcasting.broadcast_shapes(shape, sizes_of(tensor))
    return tuple([t if sizes_of(t) == shape else t.expand(shape) for t in tensors])


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of the given shapes broadcast to; an integer is a shape as well.

    Raises RuntimeError if there is none.

    >>> import plugrad
    >>> plugrad.broadcast_shapes((2, 1), (3,), 1)
    plugrad.Size([2, 3])
    """
    result: tuple[int, ...] = ()
    for position, shape in enumerate(shapes):
        sizes = int_list_argument(shape, "broadcast_shapes", "shapes", position + 1, 1)
        for size in sizes:
            if size < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size}): ({size})"
                )
        result = _joined(result, sizes, position)
    return as_size(result)


def _joined(shape: tuple[int, ...], other: tuple[int, ...], position: int) -> tuple[int, ...]:
    count = max(len(shape), len(other))
    joined = [1] * (count - len(shape)) + list(shape)
    for offset in range(1, len(other) + 1):
        size = other[-offset]
        if size in (1, joined[-offset]):
            continue
        if joined[-offset] != 1:
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {size} at -{offset}! Mismatching "
                f"argument at index {position} had {other}; but expected shape should be "
                f"broadcastable to {joined}"
            )
        joined[-offset] = size
    return tuple(joined)
