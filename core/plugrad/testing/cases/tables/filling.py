"""Samples of tensors that are filled or padded with a value."""

from __future__ import annotations

from plugrad.plugins.cases import T
from plugrad.testing.cases.inputs import CUBE, EMPTY, SCALAR, M, calls, case, fails

CASES = [
    case(
        "fill",
        calls((M, 2), (M, SCALAR), (EMPTY, 1)),
        fails(RuntimeError, "only supports 0-dimension value tensor", M, T((1,))),
    ),
    case(
        "constant_pad_nd",
        calls(
            (M, (1, 2)), (CUBE, (0, 1, 2, 0), 3), (M, (-1, 0, 1, -1), 2), (EMPTY, (1, 1)), (M, ())
        ),
        fails(RuntimeError, "Length of pad must be even but instead it equals 1", M, (1,)),
        fails(RuntimeError, "no more than twice the number of dimensions", M, (1,) * 6),
    ),
    # Without elements: others are what the memory held before.
    case("Tensor.new_empty_strided", calls((M, (0, 2), (2, 1))), gradient=False),
]
