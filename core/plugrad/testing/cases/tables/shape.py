"""Samples of operators that join, repeat, reorder and convert."""

from __future__ import annotations

import math

from plugrad.plugins.cases import D, OpSample, T
from plugrad.testing.cases.inputs import (
    CUBE,
    EMPTY,
    EXPANDED,
    NO_DIM_5,
    REALS,
    SCALAR,
    SLICED,
    TURNED,
    M,
    calls,
    case,
    fails,
)

V = T((4,))
DISTINCT = T((3, 4), unique=True)
COUNTS = T((2,), values=[1, 3], dtype="int64")
SPECIAL = T(values=[1.0, math.nan, -math.inf, 3.0, math.inf, 3.0])


CASES = [
    case(
        "cat",
        calls(
            ([M, T((1, 3))],),
            ([M, T((2, 1)), SLICED], 1),
            ([M, T((2, 3), strides="transposed")], -1),
            ([T((0,)), M],),
            ([T((0,)), T((0,))],),
            ([V],),
            ([EMPTY, M],),
            ([M, T((2, 3), dtype="float32", requires_grad=False)],),
            ([M, T((2, 3), values=[[1, 2, 3], [4, 5, 6]], dtype="int64")],),
        ),
        fails(ValueError, r"cat\(\): expected a non-empty list of Tensors", []),
        fails(RuntimeError, "Tensors must have same number of dimensions: got 2 and 1", [M, V]),
        fails(
            RuntimeError,
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for "
            "tensor number 1 in the list.",
            [M, T((3, 2))],
        ),
        fails(
            RuntimeError,
            r"zero-dimensional tensor \(at position 0\) cannot be concatenated",
            [SCALAR, SCALAR],
        ),
        fails(IndexError, NO_DIM_5, [M, M], 5),
        fails(TypeError, "expected Tensor as element 1 in argument 0, but got int", [M, 1]),
    ),
    case("concat", calls(([M, M], 1))),
    case("concatenate", calls(([M, M], 0))),
    case(
        "stack",
        calls(([M, M],), ([M, SLICED], 1), ([M, M], -1), ([SCALAR, SCALAR],), ([EMPTY, EMPTY], 1)),
        fails(RuntimeError, "stack expects a non-empty TensorList", []),
        fails(
            RuntimeError,
            r"equal size, but got \[2, 3\] at entry 0 and \[4\] at entry 1",
            [M, V],
        ),
        fails(IndexError, r"range of \[-3, 2\], but got 5", [M, M], 5),
    ),
    case("hstack", calls(([V, T((2,))],), ([M, T((2, 1))],), ([SCALAR, SCALAR],))),
    case("vstack", calls(([V, V],), ([M, T((3,))],), ([SCALAR, SCALAR],))),
    case("dstack", calls(([V, V],), ([M, M],))),
    case("atleast_1d", calls((SCALAR,), (M,))),
    case("atleast_1d", calls((SCALAR, V), ([SCALAR, V],)), view=False),
    case("atleast_2d", calls((SCALAR,), (V,), (M,))),
    case("atleast_2d", calls((SCALAR, V), ([SCALAR, V],)), view=False),
    case("atleast_3d", calls((SCALAR,), (V,), (M,), (CUBE,))),
    case("atleast_3d", calls((SCALAR, V), ([SCALAR, V],)), view=False),
    case(
        "flip",
        calls((M, (0,)), (CUBE, (0, -1)), (TURNED, (1,)), (SCALAR, (0,)), (M, ()), (EMPTY, (1,))),
        fails(RuntimeError, "dim 0 appears multiple times in the list of dims", M, (0, 0)),
        fails(IndexError, NO_DIM_5, M, (5,)),
    ),
    case("fliplr", calls((M,)), fails(RuntimeError, "Input must be >= 2-d.", V)),
    case("flipud", calls((V,)), fails(RuntimeError, "Input must be >= 1-d.", SCALAR)),
    case(
        "rot90",
        calls((M,), (M, 2), (M, 3), (M, 4), (CUBE, -1, (1, 2))),
        fails(RuntimeError, "expected total dims >= 2, but got total dims = 1", V),
    ),
    case(
        "roll",
        calls((M, 1), (M, -2, 1), (CUBE, (1, 2), (0, -1)), (M, (4,)), (EMPTY, 1, 0), (SCALAR, 1)),
        fails(RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1", M, (1, 2), (0,)),
        fails(IndexError, NO_DIM_5, M, 1, 5),
    ),
    case(
        "Tensor.repeat",
        calls(
            (M, 2, 3),
            (M, 2, 1, 1),
            (V, 2, 2),
            (SCALAR, 3),
            (M, 0, 2),
            (SLICED, 1, 2),
            (SCALAR, ()),
        ),
        fails(RuntimeError, "Number of dimensions of repeat dims can not be smaller", M, 2),
        fails(RuntimeError, "Trying to create tensor with negative dimension -2", M, -1, 2),
    ),
    case("tile", calls((M, (2,)), (M, (2, 2)), (V, (2, 1)), (M, ()))),
    case(
        "repeat_interleave",
        calls(
            (M, 2),
            (M, 2, 0),
            (M, 2, -1),
            (M, COUNTS, 0),
            (M, T((1,), values=[2], dtype="int64"), 1),
            (SCALAR, 3),
        ),
        fails(RuntimeError, "Repeats must be non-negative", M, -1),
        fails(RuntimeError, r"repeats.size\(0\) = 2 and input.size\(1\) = 3", M, COUNTS, 1),
    ),
    case("repeat_interleave", calls((COUNTS,)), gradient=False, dtypes=()),
    case(
        "tril",
        calls((T((3, 4)),), (T((3, 4)), 1), (CUBE, -1), (TURNED,), (EMPTY,)),
        fails(RuntimeError, "tril: input tensor must have at least 2 dimensions", V),
        inplace="tril_",
    ),
    case(
        "triu",
        calls((T((3, 4)),), (T((3, 4)), 1), (CUBE, -1), (TURNED,), (EMPTY,)),
        fails(RuntimeError, "triu: input tensor must have at least 2 dimensions", V),
        inplace="triu_",
    ),
    case(
        "sort",
        [
            *calls((DISTINCT,), (DISTINCT, 0), (DISTINCT, 0, True), (SCALAR,), (EMPTY, 0)),
            OpSample((M,), {"stable": True, "dim": 0}),
        ],
        fails(IndexError, NO_DIM_5, M, 5),
        grad_dtypes=("float64",),
        dtypes=(*REALS, "complex64"),
    ),
    case("sort", calls((SPECIAL, 0, False), (SPECIAL, 0, True)), gradient=False, dtypes=()),
    case(
        "sort",
        [
            OpSample((T(values=[1, 0, 1, 0, 1], dtype="int64"),), {"stable": True}),
            OpSample(
                (T(values=[1, 0, 1, 0, 1], dtype="int64"),), {"stable": True, "descending": True}
            ),
        ],
        gradient=False,
        dtypes=(),
    ),
    case("argsort", calls((DISTINCT,), (DISTINCT, 0, True), (SCALAR,)), gradient=False),
    case("msort", calls((DISTINCT,)), dtypes=REALS, grad_dtypes=("float64",)),
    case(
        "topk",
        [
            *calls((DISTINCT, 2), (DISTINCT, 2, 0), (DISTINCT, 0), (SCALAR, 1)),
            OpSample((DISTINCT, 3), {"largest": False}),
        ],
        fails(RuntimeError, "selected index k out of range", M, 4),
        fails(RuntimeError, "selected index k out of range", M, -1),
        fails(IndexError, NO_DIM_5, M, 2, 5),
        grad_dtypes=("float64",),
        dtypes=REALS,
    ),
    case("topk", calls((T(values=[1.0, math.nan, 3.0]), 2)), gradient=False, dtypes=()),
    case(
        "kthvalue",
        calls((DISTINCT, 2), (DISTINCT, 1, 0), (DISTINCT, 1, 0, True), (SCALAR, 1)),
        fails(RuntimeError, "selected number k out of range", M, 4),
        grad_dtypes=("float64",),
        dtypes=("float32", "int64"),
    ),
    case(
        "meshgrid",
        [
            OpSample((T((2,)), T((3,))), {"indexing": "ij"}),
            OpSample((T((2,)), T((3,)), T((2,))), {"indexing": "xy"}),
            OpSample((T((2,)), SCALAR), {"indexing": "ij"}),
        ],
    ),
    case(
        "diag",
        calls((V,), (V, 1), (V, -1), (M,), (M, 1), (T((3, 3), strides="transposed"), -1)),
        fails(RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 3D", CUBE),
    ),
    case(
        "diag_embed",
        calls((V,), (M, 1), (M, -1, 0, 2), (M, 0, -1, 0), (EMPTY,)),
        fails(RuntimeError, "diagonal dimensions cannot be identical 0, 0", M, 0, 0, 0),
        fails(IndexError, r"range of \[-3, 2\], but got 5", M, 0, 0, 5),
    ),
    case("clone", calls((M,), (TURNED,), (EXPANDED,), (SCALAR,), (EMPTY,))),
    case("Tensor.contiguous", calls((M,), (TURNED,), (SLICED,), (EXPANDED,))),
    case(
        "Tensor.to",
        [
            OpSample((M, D("float32"))),
            OpSample((M, D("int32"))),
            OpSample((M, D("bool"))),
            OpSample((M, "cpu")),
            OpSample((M, "cpu", D("float32"))),
            OpSample((M, T((), dtype="float32", requires_grad=False))),
            OpSample((M,), {"device": "cpu"}),
            OpSample((M,), {"dtype": D("float64"), "copy": True}),
            OpSample((M,), {"copy": True}),
            OpSample((M, D("float16"), False, True)),
        ],
        gradient=False,
        dtypes=("float32", "bfloat16", "int64", "bool"),
    ),
    case(
        "Tensor.to",
        [OpSample((T((2, 2)), D("complex128"))), OpSample((TURNED, D("float64")))],
        dtypes=(),
        grad_dtypes=("float64",),
    ),
    case("Tensor.type_as", calls((M, T((), dtype="int64"))), gradient=False),
    case("Tensor.cpu", calls((M,))),
    *(
        case(f"Tensor.{name}", calls((M,), (TURNED,)), gradient=False)
        for name in (
            "float",
            "double",
            "half",
            "bfloat16",
            "cfloat",
            "cdouble",
            "long",
            "int",
            "short",
            "char",
            "bool",
        )
    ),
]
