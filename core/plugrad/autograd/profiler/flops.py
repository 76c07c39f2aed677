"""How many floating point operations an operator takes, estimated from shapes alone."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import math
from typing import Any, Final

# Which arguments are the factors of a matrix product: (..., n, k) and (..., k, m).
PRODUCTS: Final = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "matmul": (0, 1),
    "_matmul_nh": (0, 1),
    "_matmul_hn": (0, 1),
    "addmm": (1, 2),
    "addmv": (1, 2),
    "baddbmm": (1, 2),
    "linear": (0, 1),
}
CONVOLUTIONS: Final = {"conv1d", "conv2d", "conv3d", "convolution"}
ELEMENTWISE: Final = {"add", "sub", "mul", "div"}


def estimate_flops(
    name: str, shapes: list[Any] | None, result_shape: tuple[int, ...] | None
) -> int:
    """A multiplication and an addition count one each; unknown operators count 0.

    Args:
        name: the operator's base name, such as ``mm``.
        shapes: the shape of each argument that is a tensor.
        result_shape: the shape of the result.

    >>> from plugrad.autograd.profiler.flops import estimate_flops
    >>> estimate_flops("mm", [(4, 5), (5, 6)], (4, 6))
    240
    """
    if shapes is None or result_shape is None:
        return 0
    size = math.prod(result_shape)
    if name in PRODUCTS:
        factor = shapes[PRODUCTS[name][0]]
        # The number of products in a sum; the weight of `_matmul_hn` comes transposed.
        terms = factor[-2] if name == "_matmul_hn" else factor[-1]
        return int(2 * size * terms)
    if name in CONVOLUTIONS:
        # The weight is (channels out, channels in of a group, *kernel).
        return int(2 * size * math.prod(shapes[1][1:]))
    return size if name in ELEMENTWISE else 0
