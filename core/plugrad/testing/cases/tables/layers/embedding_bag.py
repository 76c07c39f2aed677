"""Samples of bags of rows of a table."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, wrong


def whole(values: Any, dtype: str = "int64") -> T:
    return T(values=values, dtype=dtype)


TABLE = T((4, 2), unique=True)
ROWS = whole([0, 1, 3, 1, 2])
BAGS = whole([0, 2, 2])


def bags(mode: int, *rest: Any, last: bool = False) -> OpSample:
    offsets = whole([0, 2, 5]) if last else BAGS
    return call(TABLE, ROWS, offsets, False, mode, False, *(rest or (None,)), last)


CASES = [
    OpCase(
        "embedding_bag",
        [
            bags(0),
            bags(1),
            bags(2),
            bags(1, last=True),
            bags(0, T((5,)), last=True),
            call(TABLE, ROWS, BAGS, False, 0, False, T((5,)), False, 1),
            call(TABLE, ROWS, BAGS, False, 1, False, None, False, 1),
            call(TABLE, ROWS, BAGS, False, 2, False, None, False, -3),
            call(TABLE, whole([0, 1], "int32"), whole([0], "int32"), mode=1),
            call(TABLE, whole([]), whole([0, 0])),
        ],
        dtypes=("float32",),
        errors=[
            wrong(RuntimeError, r"offsets\[0\] has to be 0", TABLE, ROWS, whole([1, 2])),
            wrong(
                RuntimeError,
                r"offsets\[-1\] can not be greater than input's length 5 but got offsets\[-1\] of",
                *(TABLE, ROWS, whole([0, 9])),
            ),
            OpError(
                call(TABLE, whole([0, 4]), whole([0])),
                RuntimeError,
                r"Index 1 of input takes value 4 which is not in the valid range \[0, 4\)",
                torch_differs=True,  # its words depend on the dtype
            ),
            wrong(
                RuntimeError,
                "padding_idx must be within the number of embeddings, -4 through 3, but got 9",
                *(TABLE, ROWS, BAGS, False, 0, False, None, False, 9),
            ),
            wrong(RuntimeError, "`mode` must be sum, mean, or max", TABLE, ROWS, BAGS, False, 7),
        ],
    ),
    OpCase(
        "embedding_renorm_",
        [
            call(T((4, 2), requires_grad=False), whole([[0, 3], [3, 0]]), 1.0, 2.0),
            call(T((4, 2), requires_grad=False), whole([1]), 0.5, 1.0),
        ],
        dtypes=("float32",),
        gradient=False,
    ),
]
