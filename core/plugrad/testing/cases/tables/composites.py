"""Samples of composite operators: NumPy's names, copies with a part replaced, ..."""

from __future__ import annotations

from math import inf

from plugrad.plugins.cases import COMPLEX, OpCase, OpSample, T
from plugrad.testing.cases.inputs import (
    CUBE,
    REAL_AND_COMPLEX,
    REALS,
    SCALAR,
    TURNED,
    M,
    call,
    calls,
    case,
    fails,
    wrong,
)
from plugrad.testing.cases.tables.pointwise import SPECIAL, test_of, two, unary

UNTRACKED = T((2, 3), requires_grad=False)
PAIR = (T((2, 3)), T((2, 3)))

ALIASES = [
    *(unary(name, -0.9, 0.9, grad_dtypes=REAL_AND_COMPLEX) for name in ("arcsin", "arccos")),
    *(unary(name, -0.9, 0.9) for name in ("arctan", "arcsinh", "arctanh")),
    *(unary(name, wider=COMPLEX) for name in ("rad2deg", "deg2rad")),
    unary("arccosh", 1.1, 3.0),
    unary("fix", second=False),
    unary("sinc", grad_dtypes=REAL_AND_COMPLEX),
    unary("logit", 0.1, 0.9, wider=COMPLEX),
    OpCase("logit", [OpSample((T((3, 4), 0.3, 0.7), 0.2))], dtypes=()),
    OpCase("logit", [OpSample((T((3, 4), 0.1, 0.65), 0.7))], dtypes=()),
    test_of("signbit", dtypes=REALS),
    test_of("isposinf", dtypes=REALS),
    test_of("isneginf", dtypes=REALS),
    test_of("isreal"),
    OpCase("arctan2", two(), dtypes=REALS, inplace="arctan2_"),
    OpCase("logaddexp2", two(), dtypes=("float32",)),
    OpCase("xlogy", two((-2, 2), (0.5, 2), (2, 1.5)), dtypes=REALS, inplace="xlogy_"),
    OpCase("xlogy", calls((1.5, T((2, 3), 0.5, 2)), (0, T((3,), 0.5, 2))), dtypes=REALS),
    OpCase(
        "xlogy",
        calls((T((4,), values=(0.0, 0.0, 0.0, -0.0)), T((4,), values=(0.0, -1.0, inf, inf)))),
        dtypes=(),
        gradient=False,
    ),
    OpCase("copysign", two((0.5, 2), (-2, 2), (-1.5, 2)), dtypes=REALS, inplace="copysign_"),
    OpCase("ldexp", two(), dtypes=("float32",), inplace="ldexp_"),
    *(
        OpCase(f"Tensor.{name}_", calls((UNTRACKED, 0), (UNTRACKED, UNTRACKED)), gradient=False)
        for name in ("greater", "greater_equal", "less", "less_equal", "not_equal")
    ),
    OpCase(
        "float_power", calls((2.5, T((2, 3))), (2, T((), 0.5, 2))), dtypes=(*REALS, "complex64")
    ),
    OpCase("float_power", two((0.5, 2), (-2, 2), (2, -1.5)), dtypes=(*REALS, "complex64")),
    OpCase("clip_", calls((T((2, 3), requires_grad=False), -1, 1)), gradient=False),
    *(
        OpCase(
            f"Tensor.{name}_",
            calls((T((2, 3), requires_grad=False),)),
            gradient=False,
            wider=COMPLEX,
        )
        for name in ("absolute", "negative")
    ),
]

PARTS = [
    case(
        "Tensor.unfold",
        calls(
            (CUBE, 1, 2, 1),
            (CUBE, -1, 3, 2),
            (TURNED, 2, 1, 3),
            (SCALAR, 0, 1, 1),
            (T((5,)), 0, 2, 3),
            (T((5,)), 0, 0, 1),
        ),
        fails(
            RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 3", M, 0, 3, 1
        ),
        fails(RuntimeError, "step is 0 but must be > 0", M, 0, 1, 0),
        fails(RuntimeError, "size is -1 but must be >= 0", M, 0, -1, 1),
        fails(IndexError, "Dimension out of range", M, 2, 1, 1),
        view=True,
    ),
    case(
        "hsplit",
        calls((T((2, 4)), 2), (T((4,)), 2), (T((2, 5)), [1, 3])),
        fails(
            RuntimeError, "hsplit attempted to split along dimension 1, but the size of the", M, 2
        ),
        fails(RuntimeError, "hsplit requires a tensor with at least 1 dimension", SCALAR, 2),
        view=True,
    ),
    case(
        "vsplit",
        calls((T((4, 2)), 2), (T((5, 2)), [1, 3])),
        fails(RuntimeError, "vsplit requires a tensor with at least 2 dimension", T((4,)), 2),
        view=True,
    ),
    case(
        "dsplit",
        calls((CUBE, 2), (CUBE, [1])),
        fails(RuntimeError, "dsplit requires a tensor with at least 3 dimension", M, 2),
        view=True,
    ),
    case("unsafe_split", calls((T((5, 2)), 2), (T((2, 5)), 3, 1))),
    case("unsafe_split_with_sizes", calls((T((5, 2)), [2, 3]), (T((2, 4)), [1, 3], 1))),
    case("unsafe_chunk", calls((T((5, 2)), 2), (T((2, 5)), 3, -1))),
    case(
        "select_scatter",
        calls((M, T((3,)), 0, 1), (M, T((2,)), -1, -1)),
        fails(RuntimeError, r"src size = \[2\], slice size = \[3\]", M, T((2,)), 0, 0),
        grad_dtypes=("float64",),
        wider=COMPLEX,
    ),
    case(
        "slice_scatter",
        [call(M, T((2, 2)), 1, 0, 2), call(T((5,)), T((2,)), start=1, step=2), call(M, M)],
        grad_dtypes=("float64",),
        wider=COMPLEX,
    ),
    case(
        "diagonal_scatter", calls((T((3, 3)), T((3,))), (M, T((2,)), 1), (CUBE, T((3, 2)), 0, 0, 2))
    ),
    case(
        "as_strided_scatter",
        calls(
            (T((3, 4)), T((2, 2)), (2, 2), (4, 1)),
            (T((3, 4)), T((2, 2)), (2, 2), (1, 4), 2),
            (T((3, 4)), T(()), (), (), 5),
            (T((3, 4)), T((2, 3)), (2, 3), (1, 2), 1),  # some places are written twice
        ),
        fails(RuntimeError, r"src size = \[2\], slice size = \[3\]", M, T((2,)), (3,), (1,)),
        gradient=False,  # PyTorch's differs from the function's: see test_views.py
    ),
    case("column_stack", calls(([T((2,)), M],), ([SCALAR, SCALAR],))),
    case("row_stack", calls(([T((3,)), M],))),
    case("diagflat", calls((M,), (T((2,)), 1), (SCALAR,))),
    case(
        "broadcast_tensors",
        calls((T((2, 1)), T((3,))), (M, SCALAR), (M,)),
        fails(RuntimeError, "size of tensor a", M, T((2,))),
    ),
    case(
        "Tensor.sum_to_size",
        calls((M, 1, 3), (M, 3), (M, (2, 1)), (CUBE, 3, 1), (M, 2, 3)),
        fails(RuntimeError, "is not expandable to size", M, 2, 2),
        dtypes=("float32", "complex64"),
    ),
    case(
        "diff",
        [
            call(T((5,))),
            call(M, 2),
            call(M, dim=0),
            call(T((5,)), n=0),
            call(T((3,)), prepend=T((1,)), append=T((2,))),
        ],
        dtypes=("float32", "int64", "complex64"),
    ),
]

COMPLEX_PARTS = [
    OpCase(
        "view_as_real",
        calls(
            (T((2, 3), dtype="complex128"),),
            (T((), dtype="complex128"),),
            (T((2, 3), dtype="complex128", strides="transposed"),),
        ),
        dtypes=(),
        errors=[fails(RuntimeError, "only supported for complex tensors", M)],
        view=False,
    ),
    OpCase(
        "view_as_complex",
        calls((T((3, 2)),), (T((2,)),), (T((2, 3, 2)),)),
        dtypes=(),
        view=True,
        errors=[
            fails(RuntimeError, "must have a last dimension of size 2", M),
            fails(RuntimeError, "must have one or more dimensions", SCALAR),
            fails(
                RuntimeError,
                "must have a last dimension with stride 1",
                T((2, 2), strides="transposed"),
            ),
            fails(
                RuntimeError,
                "view_as_complex is only supported for half, float and double",
                T((2,), dtype="int64"),
            ),
        ],
    ),
    OpCase(
        "polar",
        calls(
            (T((2, 3), 0.5, 2), T((2, 3))),
            (T((2, 3), 0.5, 2), T((3,))),
            (T((), 0.5, 2), T((2, 3))),
            (T((2, 1), 0.5, 2), T((1, 3))),
        ),
        dtypes=("float32",),
    ),
]

NORMS = [
    OpCase(
        "nanmean",
        [call(M), call(M, 1), call(M, (0, 1), True), call(T(values=SPECIAL[:6]))],
        dtypes=("float32",),
    ),
    OpCase("dist", calls(PAIR, (*PAIR, 1), (M, T((3,)), 3)), dtypes=("float32",)),
    OpCase(
        "cdist",
        calls((T((2, 3)), T((4, 3))), (T((2, 3)), T((4, 3)), 1.0), (T((2, 2, 3)), T((4, 3)), 3.0)),
        dtypes=("float32",),
        errors=[
            fails(RuntimeError, "must have the same number of columns", M, T((2, 2))),
            fails(RuntimeError, "X1 got: 1D", T((2,)), M),
            fails(RuntimeError, "only supports non-negative p values", M, M, -1.0),
        ],
    ),
    case(
        "cross",
        calls((M, M, 1), (T((3, 2)), T((3, 2)), 0), (T((1, 3)), M, -1)),
        fails(RuntimeError, "no dimension of size 3 in input", T((2,)), T((2,))),
        fails(RuntimeError, "must have length 3. Got 2 and 2", M, M, 0),
        dtypes=("float32", "int64", "complex64"),
    ),
    case("linalg_cross", calls((M, M)), torch="linalg.cross", dtypes=()),
]

INDEX = T(values=[[0, 1, 1], [2, 0, 1]], dtype="int64")
SHORT = T(values=[[0], [1]], dtype="int64")
RUNNING = [
    *(
        case(
            "scatter_reduce",
            [
                call(T((3, 3), unique=True), 0, INDEX, T((2, 3), 0.5, 3, unique=True), reduce),
                call(T((2, 4)), 1, INDEX, T((2, 3), 0.5, 3), reduce, include_self=False),
                call(T((3, 2)), -1, SHORT, T((2, 1)), reduce),
                call(SCALAR, 0, T(values=[0, 0], dtype="int64"), T((2,)), reduce),
            ],
            wrong(
                RuntimeError,
                "reduce argument must be either sum, prod, mean, amax or amin",
                M,
                0,
                INDEX,
                M,
                "median",
            ),
            dtypes=("float32", "int64"),
            grad_dtypes=("float64",),
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
    ),
    *(
        OpCase(
            name,
            calls((T((3, 4), unique=True), 0), (T((3, 4), unique=True), -1), (SCALAR, 0)),
            dtypes=("float32", "int64"),
        )
        for name in ("cummax", "cummin")
    ),
    *(
        OpCase(
            name,
            calls((T(values=SPECIAL), 0), (T(values=[1.0, 3.0, 3.0, 1.0]), 0)),
            gradient=False,
            dtypes=(),
        )
        for name in ("cummax", "cummin")
    ),
    OpCase(
        "cummax",
        calls((T(values=SPECIAL), 0), (T(values=[1.0, 3.0, 3.0, 1.0]), 0)),
        gradient=False,
        dtypes=(),
    ),
    OpCase(
        "cummin",
        calls((T(values=SPECIAL), 0), (T(values=[1.0, 3.0, 3.0, 1.0]), 0)),
        gradient=False,
        dtypes=(),
    ),
]

MATRICES = [
    case("Tensor.mT", calls((M,), (CUBE,)), view=True),
    case("Tensor.T", calls((M,)), view=True),
    case("Tensor.H", calls((M,))),
    case("ger", calls((T((2,)), T((3,))))),
    case(
        "meshgrid", [*calls((T((2,)), T((3,)))), OpSample((T((2,)), T((3,))), {"indexing": "ij"})]
    ),
    case("plugrad::alias", calls((M,)), torch="ops.aten.alias", view=True),
    case("conj_physical", calls((M,))),
]

SQUARE = T((3, 3), requires_grad=False)
WRITES = [
    OpCase("Tensor.fill_", calls((SQUARE, 3), (SQUARE, T((), requires_grad=False)))),
    OpCase("Tensor.zero_", calls((SQUARE,))),
    OpCase("Tensor.fill_diagonal_", calls((SQUARE, 2))),
    *(
        OpCase(f"bitwise_{name}", calls((5, T((3,), 0, 3, "int64"))), dtypes=(), gradient=False)
        for name in ("and", "or", "xor", "left_shift", "right_shift")
    ),
    OpCase("Tensor.byte", calls((T((2, 3), 0, 9),)), dtypes=(), gradient=False),
    OpCase("divide", [OpSample((M, 2), {"rounding_mode": "floor"})], second=False),
]

CASES = [*RUNNING, *ALIASES, *PARTS, *COMPLEX_PARTS, *NORMS, *MATRICES, *WRITES]
