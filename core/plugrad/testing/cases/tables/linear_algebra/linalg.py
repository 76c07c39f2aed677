"""Samples of matrix products: every combination of dimensions, layouts, and einsum equations."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, INTEGERS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, SCALAR, calls, fails

DTYPES = (*FLOATS, "int64", "int32", "bool", "complex64")

A = T((2, 3))
B = T((3, 4))
V = T((3,))


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "dtypes": DTYPES,
        "grad_dtypes": REAL_AND_COMPLEX,
        "errors": errors,
        "low_precision": 4.0,
    }
    return OpCase(op, samples, **{**settings, **options})


def turned(*shape: int) -> T:
    return T(shape, strides="transposed")


def sliced(*shape: int) -> T:
    return T(shape, strides="sliced")


def double(*shape: int) -> T:
    return T(shape, dtype="float32")


SHAPES = r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"
UNEQUAL = "expected m1 and m2 to have the same dtype, but got: double != float"
EXPANDED = (
    r"The expanded size of the tensor \(4\) must match the existing size \(5\) at non-singleton "
    r"dimension 1.  Target sizes: \[2, 4\].  Tensor sizes: \[5\]"
)

CASES = [
    case(
        "mm",
        calls(
            (A, B),
            (turned(2, 3), turned(3, 4)),
            (sliced(2, 3), sliced(3, 4)),
            (T((2, 3), strides="expanded"), B),
            (T((0, 3)), B),
            (T((2, 0)), T((0, 4))),
            (A, T((3, 0))),
        ),
        fails(RuntimeError, SHAPES, A, T((4, 5))),
        fails(RuntimeError, "self must be a matrix", V, B),
        fails(RuntimeError, "mat2 must be a matrix", A, V),
        fails(RuntimeError, UNEQUAL, A, double(3, 4)),
    ),
    case(
        "bmm",
        calls(
            (T((2, 2, 3)), T((2, 3, 4))),
            (turned(2, 2, 3), sliced(2, 3, 4)),
            (T((0, 2, 3)), T((0, 3, 4))),
            (T((2, 2, 0)), T((2, 0, 4))),
        ),
        fails(RuntimeError, "batch1 must be a 3D tensor", A, T((2, 3, 4))),
        fails(RuntimeError, "batch2 must be a 3D tensor", T((2, 3, 4)), B),
        fails(
            RuntimeError,
            r"Expected size for first two dimensions of batch2 tensor to be: \[2, 4\] but got: "
            r"\[2, 3\].",
            T((2, 3, 4)),
            T((2, 3, 5)),
        ),
        fails(
            RuntimeError,
            "expected scalar type Double but found Float",
            T((2, 3, 4)),
            double(2, 4, 5),
        ),
    ),
    case(
        "mv",
        calls((A, V), (turned(2, 3), sliced(3)), (T((0, 3)), V), (T((2, 0)), T((0,)))),
        fails(
            RuntimeError,
            r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)",
            A,
            T((4,)),
        ),
        fails(RuntimeError, r"vector \+ matrix @ vector expected, got 1, 1, 1", V, V),
    ),
    case(
        "dot",
        calls((V, V), (sliced(3), V), (T((0,)), T((0,)))),
        fails(RuntimeError, "1D tensors expected, but got 2D and 1D tensors", A, V),
        fails(
            RuntimeError,
            r"inconsistent tensor size, expected tensor \[3\] and src \[4\] to have the same "
            "number of elements, but got 3 and 4 elements respectively",
            V,
            T((4,)),
        ),
        fails(
            RuntimeError,
            "dot : expected both vectors to have same dtype, but found Double and Float",
            V,
            double(3),
        ),
    ),
    case("vdot", calls((V, V), (sliced(3), V))),
    case(
        "outer",
        calls((V, T((4,))), (T((0,)), V)),
        fails(RuntimeError, "outer: Expected 1-D argument self, but got 2-D", A, V),
    ),
    case(
        "matmul",
        calls(
            (A, B),
            (V, V),
            (A, V),
            (V, B),
            (T((2, 2, 3)), B),
            (T((2, 2, 3)), V),
            (V, T((2, 3, 4))),
            (A, T((2, 3, 4))),
            (T((2, 2, 3)), T((2, 3, 4))),
            (T((2, 1, 2, 3)), T((3, 3, 2))),
            (T((1, 2, 3)), T((2, 3, 2))),
            (T((0, 2, 3)), B),
            (turned(2, 2, 3), turned(3, 4)),
        ),
        fails(
            RuntimeError,
            "both arguments to matmul need to be at least 1D, but they are 0D and 2D",
            SCALAR,
            B,
        ),
        fails(RuntimeError, SHAPES, A, T((4, 5))),
        fails(
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(6x4 and 3x5\)",
            T((3, 2, 4)),
            T((3, 5)),
        ),
        fails(
            RuntimeError,
            r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton "
            "dimension 0",
            T((3, 2, 4)),
            T((2, 4, 5)),
        ),
    ),
    case("Tensor.__matmul__", calls((A, B), (V, B))),
    case(
        "addmm",
        [
            *calls((T((4,)), A, B), (T((2, 4)), A, B), (T((2, 1)), A, B), (SCALAR, A, B)),
            OpSample((T((4,)), A, B), {"beta": 2, "alpha": 3}),
            OpSample((T((4,)), A, B), {"beta": 0}),
            OpSample((T((4,)), A, B), {"alpha": 0.5}),
        ],
        fails(RuntimeError, SHAPES, V, A, T((4, 5))),
        fails(RuntimeError, EXPANDED, T((5,)), A, B),
        fails(
            RuntimeError,
            "self and mat2 must have the same dtype, but got Double and Float",
            T((4,)),
            A,
            double(3, 4),
        ),
        dtypes=FLOATS,
    ),
    case("addmv", [*calls((T((2,)), A, V)), OpSample((T((2,)), A, V), {"beta": 2, "alpha": 3})]),
    case(
        "addr",
        [
            *calls((A, T((2,)), V), (V, T((2,)), V)),
            OpSample((T((2, 1)), T((2,)), V), {"beta": 2, "alpha": 3}),
            OpSample((A, T((2,)), V), {"beta": 0}),
        ],
        fails(RuntimeError, "addr: Expected 1-D argument vec2, but got 2-D", A, V, A),
        inplace="addr_",
    ),
    case(
        "baddbmm",
        [
            *calls(*[(T(shape), T((2, 2, 3)), T((2, 3, 4))) for shape in ((4,), (2, 2, 4))]),
            OpSample((T((2, 1, 4)), T((2, 2, 3)), T((2, 3, 4))), {"beta": 2, "alpha": -1}),
        ],
    ),
    case("addbmm", calls((T((2, 4)), T((2, 2, 3)), T((2, 3, 4)))), inplace="addbmm_"),
    case(
        "linear",
        calls(
            (A, T((4, 3)), T((4,))),
            (A, T((4, 3))),
            (V, T((4, 3)), T((4,))),
            (T((2, 2, 3)), T((4, 3)), T((4,))),
            (T((2, 2, 3)), T((4, 3))),
            (A, V),
            (T((2, 2, 3)), V),
            (T((0, 3)), T((4, 3)), T((4,))),
            (T((2, 0)), T((4, 0)), T((4,))),
            (turned(2, 3), turned(4, 3), sliced(4)),
            (A, T((4, 3)), T((1,))),
            (A, T((4, 3)), SCALAR),
            (A, T((4, 3)), T((2, 4))),
            (A, T((4, 3), requires_grad=False), T((4,))),
            (T((2, 3), requires_grad=False), T((4, 3)), T((4,))),
        ),
        fails(
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)",
            A,
            T((4, 5)),
        ),
        fails(RuntimeError, EXPANDED, A, T((4, 3)), T((5,))),
        fails(RuntimeError, UNEQUAL, A, double(4, 3)),
        fails(
            RuntimeError,
            "both arguments to linear need to be at least 1D, but they are 0D and 2D",
            SCALAR,
            A,
        ),
        fails(
            RuntimeError,
            "self and mat2 must have the same dtype, but got Float and Double",
            A,
            T((4, 3)),
            double(4),
        ),
        torch="nn.functional.linear",
    ),
    case(
        "trace",
        calls((A,), (T((3, 2)),), (T((0, 2)),), (turned(3, 3),)),
        fails(RuntimeError, "trace: expected a matrix, but got tensor with dim 1", V),
        dtypes=("float32", *INTEGERS, "complex64"),
    ),
    case(
        "inner",
        calls((V, V), (A, V), (A, T((4, 3))), (SCALAR, A), (T((2, 2, 3)), A)),
        fails(
            RuntimeError,
            r"inner\(\) the last dimension must match on both input tensors but got shapes "
            r"\[2, 3\] and \[2, 4\]",
            A,
            T((2, 4)),
        ),
    ),
    case("kron", calls((A, B), (V, A), (SCALAR, A), (T((2, 1, 2)), T((2, 2)))), dtypes=FLOATS),
    case(
        "tensordot",
        calls(
            (T((2, 3, 4)), T((3, 4, 2))),
            (A, B, 1),
            (A, V, 0),
            (T((2, 3, 4)), T((4, 3)), ([1, 2], [1, 0])),
            (T((2, 1)), T((3, 2)), ([1], [0])),
            (T((0, 3)), B, 1),
        ),
        fails(
            RuntimeError,
            "contracted dimensions need to match, but first has size 3 in dim -1 and second has "
            "size 2 in dim 0",
            A,
            T((2, 4)),
            1,
        ),
        fails(
            RuntimeError,
            "both dimension lists should have same length",
            A,
            T((2, 4)),
            ([0, 1], [0]),
        ),
        fails(RuntimeError, "tensordot expects dims >= 0, but got dims=-1", A, B, -1),
    ),
    case(
        "einsum",
        calls(
            ("ij,jk->ik", A, B),
            ("ij,jk", A, B),
            ("ij,jk", [A, B]),
            ("bij,bjk->bik", T((2, 2, 3)), T((2, 3, 2))),
            ("ij->ji", A),
            ("ji", A),
            ("ij->", A),
            ("ij->j", A),
            ("ii->i", T((3, 3))),
            ("ii", T((3, 3))),
            ("iij->ij", T((2, 2, 3))),
            ("i,j->ij", V, T((2,))),
            ("i,i->i", V, V),
            ("i,i->i", T((1,)), V),
            ("ij,ij->i", T((1, 3)), T((2, 1))),
            ("...ij,...jk->...ik", T((2, 1, 2, 3)), T((3, 3, 2))),
            ("...i->i...", T((2, 3))),
            ("...i->i", A),
            ("...ba", T((2, 3, 4))),
            ("i...,i...->...", A, A),
            (" i j , j k -> i k ", A, B),
            ("aB,Bc", A, B),
            (",ij", SCALAR, A),
            ("ij,jk,kl->il", A, B, T((4, 2))),
            ("ij,ij,ij->j", A, A, T((2, 1))),
            ("bn,anm,bm->ba", T((2, 3)), T((2, 3, 4)), T((2, 4))),
            (A, [0, 1], B, [1, 2], [0, 2]),
            (A, [0, 1], B, [1, 2]),
            (A, [..., 1], B, [1, 2], [..., 2]),
            ("ij,jk->ik", T((0, 3)), B),
            ("ij,jk->ik", T((2, 0)), T((0, 4))),
        ),
        fails(
            RuntimeError,
            r"einsum\(\): fewer operands were provided than specified in the equation",
            "i,j",
            V,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): more operands were provided than specified in the equation",
            "i",
            V,
            V,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): the number of subscripts in the equation \(2\) does not match the number "
            r"of dimensions \(1\) for operand 0 and no ellipsis was given",
            "ij",
            V,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): subscript j has size 4 for operand 1 which does not broadcast with "
            "previously seen size 3",
            "ij,jk",
            A,
            T((4, 2)),
        ),
        fails(
            RuntimeError,
            r"einsum\(\): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
            "ii",
            A,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): output subscript j does not appear in the equation for any input operand",
            "i->j",
            V,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): output subscript i appears more than once in the output",
            "i->ii",
            V,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): invalid subscript given at index 1 in the equation string, subscripts "
            r"must be in \[a-zA-Z\]",
            "i1->i",
            A,
        ),
        fails(
            RuntimeError,
            r"einsum\(\): found '.' for operand 0 that is not part of any ellipsis",
            "..i->i",
            V,
        ),
        fails(
            ValueError,
            r"einsum\(\): subscript in subscript list is not within the valid range \[0, 52\)",
            A,
            [0, 60],
            B,
            [1, 2],
        ),
        dtypes=("float32", "int64", "complex64"),
    ),
]
