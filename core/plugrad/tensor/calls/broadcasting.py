"""The common shape of operands that are broadcast."""

from __future__ import annotations


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two operands broadcast to; RuntimeError in PyTorch's words if there is none."""
    if a == b:
        return a
    ndim = max(len(a), len(b))
    shape: list[int] = [1] * ndim
    for offset in range(1, ndim + 1):
        left = a[-offset] if offset <= len(a) else 1
        right = b[-offset] if offset <= len(b) else 1
        if left != right and left != 1 and right != 1:
            raise RuntimeError(
                f"The size of tensor a ({left}) must match the size of tensor b ({right}) at "
                f"non-singleton dimension {ndim - offset}"
            )
        shape[-offset] = right if left == 1 else left
    return tuple(shape)
