"""Samples of operators that read and write elements by index tensors and masks."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpSample, T
from plugrad.testing.cases.inputs import (
    CUBE,
    NO_DIM_5,
    SCALAR,
    M,
    calls,
    case,
    fails,
    wrong,
)

TURNED = T((2, 3), strides="transposed")


def index(values: Any, dtype: str = "int64") -> T:
    return T(values=values, dtype=dtype)


def mask(values: Any) -> T:
    return T(values=values, dtype="bool")


CORNER = index([[0, 1], [1, 0]])
ROW = index([[0, 1, 0]])
NONE = index([])
MASK = mask([[True, False, True], [False, True, True]])
ROWS = mask([True, False])
STEPS = T(values=[1.0, 2.0, 3.0])
TABLE = T(values=[[0.0, 1.0, 2.0], [-1.0, 0.0, 5.0]])
BOUNDS = "index 5 is out of bounds for dimension 0 with size 2"
SHAPES = "The size of tensor a .* must match the size of tensor b .* at non-singleton dimension 1"

CASES = [
    case(
        "gather",
        calls(
            (M, 0, ROW),
            (M, 1, CORNER),
            (TURNED, -1, index([[2, 2, 0, 1]])),
            (SCALAR, 0, index(0)),
            (SCALAR, 0, index([0, 0])),
            (T((2,)), 0, index(1)),
            (M, 0, index([[0, 1, 0]], "int32")),
            (CUBE, 1, index([[[0, 2], [1, 1]]])),
        ),
        fails(
            RuntimeError, "Index tensor must have the same number of dimensions", M, 0, index([0])
        ),
        fails(RuntimeError, BOUNDS, M, 0, index([[5]])),
        fails(RuntimeError, "index -1 is out of bounds", M, 0, index([[-1]])),
        fails(RuntimeError, r"gather\(\): Expected dtype int32/int64 for index", M, 0, M),
        fails(
            RuntimeError,
            r"Size does not match at dimension 1 expected index \[1, 4\] to be no larger than self "
            r"\[2, 3\] apart from dimension 0",
            M,
            0,
            index([[0, 0, 0, 0]]),
        ),
        fails(IndexError, NO_DIM_5, M, 5, ROW),
    ),
    case("gather", calls((M, 0, NONE)), gradient=False),
    case(
        "scatter",
        calls(
            (M, 0, ROW, T((1, 3))),
            (M, 1, CORNER, T((2, 2))),
            (M, 1, CORNER, 5),
            (TURNED, -1, index([[2, 0]]), T((1, 2))),
            (SCALAR, 0, index(0), T(())),
        ),
        fails(RuntimeError, BOUNDS, M, 0, index([[0, 5, 0]]), T((1, 3))),
        fails(
            RuntimeError,
            r"scatter\(\): Expected self.dtype to be equal to src.dtype",
            M,
            0,
            ROW,
            T((1, 3), dtype="float32"),
        ),
        fails(
            RuntimeError,
            r"Expected index \[1, 3\] to be no larger than self \[2, 3\] apart from dimension 0 "
            r"and to be no larger size than src \[1, 2\]",
            M,
            0,
            ROW,
            T((1, 2)),
        ),
        fails(RuntimeError, "must have the same number of dimensions as self", M, 0, index([0]), M),
        inplace="scatter_",
    ),
    case(
        "scatter_add",
        calls(
            (M, 0, index([[0, 0, 1]]), T((1, 3))),
            (M, 0, index([[0, 0, 0], [0, 1, 0]]), T((2, 3))),
            (TURNED, 1, index([[0, 0]]), T((1, 2))),
            (SCALAR, 0, index(0), T(())),
        ),
        fails(RuntimeError, BOUNDS, M, 0, index([[0, 5]]), T((1, 2))),
        fails(RuntimeError, r"Expected dtype int32/int64 for index", M, 0, T((1, 2)), T((1, 2))),
        inplace="scatter_add_",
    ),
    case(
        "index_select",
        calls(
            (M, 0, index([1, 1, 0])),
            (CUBE, -1, index([3, 0])),
            (M, 1, index(2)),
            (M, 0, NONE),
            (TURNED, 1, index([0], "int32")),
            (SCALAR, 0, index([0])),
        ),
        fails(IndexError, "index out of range in self", M, 0, index([0, 5])),
        fails(IndexError, r"index_select\(\): Index is supposed to be a vector", M, 0, CORNER),
        fails(RuntimeError, "Expected dtype int32 or int64 for index", M, 0, T((2,))),
        fails(IndexError, NO_DIM_5, M, 5, index([0])),
    ),
    case(
        "index_add",
        [
            *calls(
                (M, 0, index([0, 0, 1]), T((3, 3))),
                (CUBE, -1, index([3, 3]), T((2, 3, 2))),
                (T((3,)), 0, index([2, 2, 0, 2]), T((4,))),
                (M, 1, NONE, T((2, 0))),
                (TURNED, 0, index([1, 1]), T((2, 3))),
            ),
            OpSample((M, 0, index([0, 0]), T((2, 3))), {"alpha": 2}),
        ],
        fails(
            RuntimeError,
            r"Number of indices \(1\) should be equal to source.size\(dim\): \(2\), for dim: 0",
            M,
            0,
            index([0]),
            M,
        ),
        fails(
            RuntimeError,
            r"source tensor shape must match self tensor shape, excluding the specified dimension. "
            r"Got self.shape = \[2, 3\] source.shape = \[2, 4\]",
            M,
            0,
            index([0, 0]),
            T((2, 4)),
        ),
        fails(RuntimeError, BOUNDS, M, 0, index([0, 5]), M),
        fails(IndexError, "index out of range in self", T((3,)), 0, index([3]), T((1,))),
        fails(
            RuntimeError,
            r"self \(Double\) and source \(Float\) must have the same scalar type",
            M,
            0,
            index([0, 0]),
            T((2, 3), dtype="float32"),
        ),
        inplace="index_add_",
    ),
    case(
        "index_copy",
        calls((M, 0, index([1, 0]), M), (CUBE, 1, index([2]), T((2, 1, 4)))),
        fails(IndexError, r"index_copy_\(\): index 5 is out of bounds", M, 0, index([0, 5]), M),
        fails(RuntimeError, "must have same slice shapes", M, 0, index([0, 1]), T((2, 4))),
        inplace="index_copy_",
    ),
    case(
        "index_fill",
        calls((M, 0, index([1]), 5), (M, 1, index([0, 2, 0]), T(())), (M, 0, index(1), 2)),
        fails(IndexError, BOUNDS, M, 0, index([5]), 1),
        fails(RuntimeError, "Index has to be a vector/scalar", M, 0, CORNER, 1),
        fails(
            RuntimeError, "only supports a 0-dimensional value tensor", M, 0, index([0]), T((1,))
        ),
        inplace="index_fill_",
    ),
    case(
        "index",
        calls(
            (M, [index([1, 0, 1])]),
            (M, [None, index([2, 0])]),
            (M, [CORNER, index([0, 2])]),
            (CUBE, [index([0, 1]), None, index([3, 3])]),
            (CUBE, [None, index([0, -1]), index([[1], [2]])]),
            (M, [MASK]),
            (M, [ROWS]),
            (CUBE, [None, mask([True, False, True])]),
            (M, [ROWS, index([2])]),
            (TURNED, [index([0, 1], "int32")]),
            (T((0, 3)), [NONE]),
        ),
        fails(IndexError, BOUNDS, M, [index([0, 5])]),
        fails(
            IndexError, "index -3 is out of bounds for dimension 0 with size 2", M, [index([-3])]
        ),
        fails(IndexError, "tensors used as indices must be long, int, byte or bool", M, [T((1,))]),
        fails(IndexError, r"too many indices for tensor of dimension 2 \(got 3\)", M, [ROW] * 3),
        fails(
            IndexError,
            r"indexing tensors could not be broadcast together with shapes \[2\], \[3\]",
            M,
            [index([0, 1]), index([0, 1, 2])],
        ),
        fails(
            IndexError,
            r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed "
            r"tensor \[2, 3\] at index 1",
            M,
            [None, ROWS],
        ),
        torch="ops.aten.index.Tensor",
    ),
    case(
        "index_put",
        calls(
            (M, [index([1])], T((3,))),
            (M, [index([1, 0])], T((2, 3))),
            (M, [None, index([2, 0])], T((2, 2))),
            (M, [MASK], T((4,))),
            (M, [ROWS], T(())),
            (M, [index([0, 0, 1])], T((3, 3)), True),
            (M, [index([0, 0]), index([1, 1])], T(()), True),
            (TURNED, [index([0, 0, 1])], T((3,)), True),
        ),
        fails(
            RuntimeError,
            r"shape mismatch: value tensor of shape \[4\] cannot be broadcast to indexing result "
            r"of shape \[2, 3\]",
            M,
            [index([0, 1])],
            T((4,)),
        ),
        fails(
            RuntimeError,
            "got Double for the destination and Float for the source",
            M,
            [index([0])],
            T((3,), dtype="float32"),
        ),
        fails(IndexError, BOUNDS, M, [index([0, 5])], M),
        torch="ops.aten.index_put",
        inplace="index_put_",
    ),
    case(
        "masked_fill",
        calls(
            (M, MASK, 2.0),
            (M, mask([True, False, True]), 1),
            (M, MASK, T(())),
            (M, mask(True), 0),
            (T((3,)), MASK, T(())),
            (TURNED, MASK, 1),
            (T((0, 3)), mask([True, False, True]), 1),
        ),
        fails(RuntimeError, "only supports boolean masks, but got mask with dtype double", M, M, 1),
        fails(RuntimeError, "only supports a 0-dimensional value tensor", M, MASK, T((1,))),
        fails(RuntimeError, SHAPES, M, mask([True, False]), 1),
        inplace="masked_fill_",
    ),
    case(
        "masked_select",
        calls((M, MASK), (M, mask([True, False, True])), (T((3,)), MASK), (SCALAR, mask(True))),
        fails(RuntimeError, "masked_select: expected BoolTensor for mask", M, M),
    ),
    case(
        "masked_scatter",
        calls((M, MASK, T((4,))), (M, MASK, T((2, 3))), (M, mask([True, False, True]), T((5,)))),
        fails(RuntimeError, "Number of elements of source < number of ones", M, MASK, T((2,))),
        inplace="masked_scatter_",
    ),
    case(
        "take",
        calls((M, index([0, 5, -1])), (TURNED, CORNER), (M, index(2)), (M, NONE)),
        fails(
            IndexError,
            "out of range: tried to access index 6 on a tensor of 6 elements.",
            M,
            index([6]),
        ),
        fails(RuntimeError, r"take\(\): Expected a long tensor for index, but got Double", M, M),
    ),
    case(
        "scatter",
        [
            OpSample((T((3,), 0.5, 2), 0, index([0, 0, 1]), value), {"reduce": reduce})
            for value in (T((3,), 0.5, 2), 2.5)
            for reduce in ("add", "multiply")
        ],
        wrong(
            RuntimeError,
            "reduce argument must be either add or multiply",
            T((3,)),
            0,
            index([0]),
            2.0,
            reduce="sum",
        ),
        gradient=False,  # PyTorch has none
        inplace="scatter_",
        dtypes=("float32", "int64"),
    ),
    case(
        "put",
        [*calls((M, index([0, 4]), T((2,)))), OpSample((M, index([0, 0]), T((2,)), True))],
        torch="Tensor.put",
    ),
    case(
        "take_along_dim",
        calls(
            (M, ROW, 0),
            (M, index([[0], [2]]), 1),
            (M, index([0, 4])),
            (TURNED, index([[1]]), 1),
            (M, index([[-1, 5], [4, -5]]), 1),  # counted around
        ),
        fails(RuntimeError, r"dtype of indices should be Long but got Double", M, M, 0),
        fails(RuntimeError, "should have the same number of dimensions", M, index([0]), 1),
    ),
    case(
        "searchsorted",
        [
            *calls((STEPS, T((2, 3))), (STEPS, T(())), (STEPS, 2), (TABLE, T((2, 4)))),
            OpSample((STEPS, T(values=[1.0, 2.0, 9.0, float("nan")])), {"right": True}),
            OpSample((STEPS, T(values=[1.0, 2.0])), {"side": "left", "out_int32": True}),
            OpSample(
                (T(values=[3.0, 1.0, 2.0]), T(values=[1.5, 3.0])),
                {"sorter": T(values=[1, 2, 0], dtype="int64", requires_grad=False)},
            ),
        ],
        wrong(RuntimeError, "side can only be 'left' or 'right'", STEPS, STEPS, side="up"),
        wrong(RuntimeError, "side and right can't be set", STEPS, STEPS, side="left", right=True),
        fails(RuntimeError, "should have positive dimension", T(()), STEPS),
        fails(RuntimeError, "input value can be a scalar only when", TABLE, 2.0),
        fails(RuntimeError, "first N-1 dimensions of boundaries tensor", TABLE, T((3, 1))),
        gradient=False,
        dtypes=("float32", "int64"),
    ),
    case(
        "bucketize",
        [
            *calls((T((2, 3)), STEPS), (2, STEPS)),
            OpSample((T(values=[2.0]), STEPS), {"right": True}),
        ],
        fails(
            RuntimeError, r"boundaries tensor must be 1 dimension, but got dim\(2\)", STEPS, TABLE
        ),
        gradient=False,
        dtypes=("float32", "int64"),
    ),
    case(
        "nonzero",
        [
            *calls((T(values=[[0, 1], [2, 0]], dtype="int64"),), (MASK,), (M,)),
            *calls((T(values=0.0),), (T(values=1.0),)),
            OpSample((MASK,), {"as_tuple": True}),
            OpSample((T(values=1.0),), {"as_tuple": True}),
            OpSample((MASK,), {"as_tuple": False}),
        ],
        gradient=False,
    ),
    case("argwhere", calls((MASK,)), gradient=False),
]
