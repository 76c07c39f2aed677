"""Samples of view operators: every layout of the input, every way to name the dimensions."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import (
    CUBE,
    EMPTY,
    EXPANDED,
    NO_DIM_5,
    SCALAR,
    SLICED,
    TURNED,
    M,
    call,
    calls,
    fails,
)
from plugrad.testing.cases.inputs import case as any_case

FLOATS = T((2, 4), dtype="float32")


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    return any_case(op, samples, *errors, **{"view": True, **options})


CASES = [
    case(
        "Tensor.view",
        calls(
            (M, 3, 2),
            (M, (6,)),
            (M, -1),
            (CUBE, 2, -1),
            (CUBE, 1, 6, 1, 4),
            (TURNED, 2, 1, 3, 4),
            (EMPTY, 3, 0),
            (EMPTY, -1, 3),
            (SCALAR, 1, 1),
            (T((1,)), ()),
            (EXPANDED, 2, 3, 1),
        ),
        fails(RuntimeError, r"shape '\[2, 4\]' is invalid for input of size 6", M, 2, 4),
        fails(RuntimeError, r"shape '\[-1, 4\]' is invalid for input of size 6", M, -1, 4),
        fails(RuntimeError, "only one dimension can be inferred", M, -1, -1),
        fails(
            RuntimeError, r"invalid shape dimension -2 at index 0 of shape \[-2, 3\]", M, -2, 3
        ),
        fails(RuntimeError, r"tensor of 0 elements into shape \[0, -1\]", EMPTY, 0, -1),
        fails(RuntimeError, "view size is not compatible", T((2, 3), strides="transposed"), -1),
    ),
    case(
        "Tensor.view",
        [
            # The first two under vmap, where rows do not lie next to each other. The second is
            # a small float: of a nan's bits a processor keeps what it likes.
            *calls((FLOATS, D("int32")), (T(values=1 << 29, dtype="int32"), D("float32"))),
            *calls((FLOATS, D("int16")), (FLOATS, D("complex64")), (M, D("uint8"))),
            call(T((2, 3), dtype="float32", strides="transposed"), dtype=D("int32")),
        ],
        fails(RuntimeError, r"self.dim\(\) cannot be 0 to view", SCALAR, D("int8")),
        fails(RuntimeError, r"self.size\(-1\) must be divisible by 2", M, D("complex128")),
        fails(RuntimeError, r"self.stride\(-1\) must be 1", SLICED, D("int8")),
        dtypes=("float32", "int32"),
        grad_dtypes=(),
        gradient=False,
    ),
    case("Tensor.view_as", calls((M, T((3, 2), requires_grad=False)))),
    case(
        "reshape",
        calls(
            (M, (3, 2)),
            (TURNED, (24,)),
            (TURNED, (2, 12)),
            (TURNED, (2, 3, 2, 2)),
            (SLICED, (3, 2)),
            (EXPANDED, (6,)),
            (EXPANDED, (2, 3, 1)),
            (EMPTY, (0,)),
            (SCALAR, (1,)),
            (T((4, 1, 3), strides="sliced"), (2, 2, 3)),
        ),
        fails(RuntimeError, r"shape '\[5\]' is invalid for input of size 6", M, (5,)),
        view=False,
    ),
    case("Tensor.reshape_as", calls((M, T((3, 2), requires_grad=False))), view=False),
    case(
        "flatten",
        calls((CUBE,), (CUBE, 1), (CUBE, 0, 1), (CUBE, -2, -1), (SCALAR,), (M, 1, 1), (EMPTY,)),
        fails(RuntimeError, "start_dim cannot come after end_dim", M, 1, 0),
        fails(IndexError, NO_DIM_5, M, 5),
    ),
    case("flatten", calls((TURNED,), (SLICED,)), view=False),
    case(
        "unflatten",
        calls((T((2, 6)), 1, (2, 3)), (T((2, 6)), -1, (-1, 2)), (T((2, 6)), 0, (1, 2))),
        fails(
            RuntimeError,
            r"unflatten: Provided sizes \[2, 2\] don't multiply up to the size of dim 1 \(3\)",
            M,
            1,
            (2, 2),
        ),
        fails(RuntimeError, "unflatten: sizes must be non-empty", M, 1, ()),
    ),
    case("ravel", calls((M,), (SCALAR,))),
    case("ravel", calls((TURNED,)), view=False),
    case(
        "permute",
        calls(
            (CUBE, (2, 0, 1)),
            (CUBE, (0, -1, 1)),
            (TURNED, (2, 1, 0)),
            (SCALAR, ()),
            (EMPTY, (1, 0)),
        ),
        fails(RuntimeError, r"input.dim\(\) = 2 is not equal to len\(dims\) = 1", M, (0,)),
        fails(RuntimeError, r"permute\(\): duplicate dims are not allowed", M, (0, 0)),
        fails(IndexError, NO_DIM_5, M, (0, 5)),
    ),
    case(
        "transpose",
        calls((CUBE, 0, 2), (CUBE, -1, 1), (SLICED, 0, 1), (SCALAR, 0, -1), (EMPTY, 0, 1)),
        fails(IndexError, NO_DIM_5, M, 0, 5),
    ),
    case(
        "t",
        calls((M,), (T((3,)),), (SCALAR,), (EMPTY,)),
        fails(RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D", CUBE),
    ),
    case("swapaxes", calls((CUBE, 0, 2))),
    case("swapdims", calls((CUBE, 0, -1))),
    case(
        "movedim",
        calls((CUBE, 0, 2), (CUBE, -1, 0), (CUBE, (0, 1), (2, 0)), (CUBE, (0, 2), (1, 0))),
        fails(RuntimeError, "movedim: Invalid source or destination dims", M, (0, 1), (0,)),
        fails(RuntimeError, r"movedim: repeated dim in `source` \(\[0, 0\]\)", M, (0, 0), (0, 1)),
        fails(RuntimeError, "movedim: repeated dim in `destination`", M, (0, 1), (0, 0)),
    ),
    case("moveaxis", calls((CUBE, 0, 2), (CUBE, (0, 1), (1, 2)))),
    case("adjoint", calls((CUBE,), (M,)), view=False),
    case(
        "squeeze",
        calls(
            (T((1, 3, 1)),),
            (T((1, 3, 1)), 0),
            (T((1, 3, 1)), 1),
            (T((1, 3, 1)), (0, -1)),
            (T((1, 3, 1)), ()),
            (SCALAR,),
            (SCALAR, 0),
            (T((1, 0)),),
        ),
        fails(IndexError, NO_DIM_5, M, 5),
        fails(RuntimeError, "dim 0 appears multiple times in the list of dims", M, (0, -2)),
    ),
    case(
        "unsqueeze",
        calls((M, 0), (M, 1), (M, -1), (SCALAR, 0), (EMPTY, 1), (TURNED, -2)),
        fails(IndexError, r"expected to be in range of \[-3, 2\], but got 4", M, 4),
    ),
    case(
        "Tensor.expand",
        calls(
            (T((1, 3)), 4, 3),
            (T((1, 3)), -1, 3),
            (T((3,)), 2, 2, 3),
            (SCALAR, 2, 2),
            (T((1, 3), strides="sliced"), 2, 3),
            (T((2, 1), strides="sliced"), 2, 3),
            (T((1, 3)), 0, 3),
            (M, 2, 3),
            (T((0, 1)), 0, 4),
        ),
        fails(
            RuntimeError,
            r"The expanded size of the tensor \(3\) must match the existing size \(2\) at "
            r"non-singleton dimension 0.  Target sizes: \[3, 3\].  Tensor sizes: \[2, 3\]",
            M,
            3,
            3,
        ),
        fails(RuntimeError, r"the number of sizes provided \(1\) must be greater or equal", M, 3),
        fails(
            RuntimeError,
            r"\(-1\) isn't allowed in a leading, non-existing dimension 0",
            M,
            -1,
            2,
            3,
        ),
    ),
    case("Tensor.expand_as", calls((T((1, 3)), T((2, 3), requires_grad=False)))),
    case("broadcast_to", calls((T((1, 3)), (2, 3)))),
    case(
        "narrow",
        calls((CUBE, 1, 0, 2), (CUBE, -1, 1, 3), (CUBE, 0, -1, 1), (CUBE, 1, 3, 0)),
        fails(RuntimeError, r"start \(1\) \+ length \(3\) exceeds dimension size", M, 0, 1, 3),
        fails(
            IndexError,
            r"start out of range \(expected to be in range of \[-2, 2\], but got 3\)",
            M,
            0,
            3,
            1,
        ),
        fails(RuntimeError, r"narrow\(\): length must be non-negative", M, 0, 0, -1),
        fails(RuntimeError, r"narrow\(\) cannot be applied to a 0-dim tensor", SCALAR, 0, 0, 1),
    ),
    case(
        "select",
        calls((CUBE, 0, 1), (CUBE, -1, -2), (T((3,)), 0, 2), (TURNED, 2, 0)),
        fails(
            IndexError,
            r"select\(\): index 2 out of range for tensor of size \[2, 3\] at dimension 0",
            M,
            0,
            2,
        ),
        fails(IndexError, r"select\(\): index -3 out of range", M, 0, -3),
        fails(IndexError, r"select\(\) cannot be applied to a 0-dim tensor", SCALAR, 0, 0),
    ),
    case(
        "slice",
        calls(
            (CUBE, 2, 1, 4, 2),
            (CUBE, 0, None, None, 1),
            (CUBE, 1, -2, None, 1),
            (CUBE, -1, 0, -1, 3),
            (CUBE, 1, 2, 1, 1),
            (CUBE, 1, -9, 9, 1),
            (TURNED, 2, 1, 4, 2),
        ),
        fails(RuntimeError, "slice step must be positive", M, 0, 0, 1, 0),
        fails(IndexError, r"slice\(\) cannot be applied to a 0-dim tensor", SCALAR, 0),
        torch="ops.aten.slice.Tensor",
    ),
    case(
        "split",
        calls((T((5, 2)), 2), (T((2, 5)), 3, 1), (T((5,)), [1, 4]), (T((2, 4)), [0, 3, 1], -1)),
        fails(RuntimeError, "split_size can only be 0 if dimension size is 0", M, 0),
        fails(RuntimeError, "split expects split_size be non-negative, but got", M, -1),
        fails(
            RuntimeError,
            r"to 2 \(input tensor's size at dimension 0\), but got split_sizes=\[1, 2\]",
            M,
            [1, 2],
        ),
        fails(RuntimeError, "split_sizes have only non-negative entries", M, [-1, 3]),
        fails(RuntimeError, "split expects at least a 1-dimensional tensor", SCALAR, 1),
    ),
    case("split", calls((EMPTY, 2), (EMPTY, 0)), gradient=False),
    case("split_with_sizes", calls((T((5, 2)), [2, 3]), (T((2, 4)), [1, 3], 1))),
    case(
        "chunk",
        calls((T((5, 2)), 2), (T((5, 2)), 4), (T((2, 5)), 3, -1), (T((2, 5)), 7, 1)),
        fails(RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0", M, 0),
        fails(RuntimeError, "chunk expects at least a 1-dimensional tensor", SCALAR, 1),
    ),
    case("chunk", calls((EMPTY, 3)), gradient=False),
    case(
        "tensor_split",
        calls(
            (T((7, 2)), 3),
            (T((7,)), (2, 5)),
            (T((2, 7)), (1, 9), 1),
            (T((7, 2)), T(values=3, dtype="int64")),
            (T((7,)), T(values=[2, 5], dtype="int64")),
        ),
    ),
    case(
        "unbind",
        calls((M,), (CUBE, 1), (CUBE, -1), (TURNED, 2)),
        fails(IndexError, "Dimension specified as 0 but tensor has no dimensions", SCALAR),
    ),
    case(
        "diagonal",
        calls(
            (T((3, 4)),),
            (T((3, 4)), 1),
            (T((3, 4)), -2),
            (CUBE, 0, 1, 2),
            (CUBE, 1, -1, 0),
            (T((3, 4)), 9),
            (T((3, 3), strides="transposed"), 1),
        ),
        fails(RuntimeError, "diagonal dimensions cannot be identical 0, 0", M, 0, 0, 0),
        fails(IndexError, r"expected to be in range of \[-1, 0\], but got 1", T((2,))),
    ),
    case(
        "view_as_real",
        calls((T((2, 3), dtype="complex128"),), (T((), dtype="complex128"),)),
        fails(RuntimeError, "view_as_real is only supported for complex tensors", M),
        dtypes=("complex64",),
        grad_dtypes=("complex128",),
    ),
    case(
        "view_as_complex",
        calls((T((3, 2)),), (T((2,)),), (T((2, 4, 2)),)),
        fails(RuntimeError, "only supported for half, float and double", T((2,), dtype="int64")),
        fails(RuntimeError, "must have one or more dimensions", T(())),
        fails(RuntimeError, "must have a last dimension of size 2", M),
        fails(
            RuntimeError,
            "must have a last dimension with stride 1",
            T((2, 2), strides="transposed"),
        ),
        dtypes=("float32",),
        grad_dtypes=("float64",),
    ),
    case(
        "as_strided",
        calls(
            (T((3, 4)), (2, 2), (4, 1)),
            (T((3, 4)), (2, 2), (1, 4), 2),
            (T((3, 4)), (3, 3), (1, 1)),
            (T((3, 4)), (2, 3), (0, 2), 1),
            (T((3, 4)), (), (), 5),
            (T((3, 4)), (0, 2), (1, 1)),
        ),
        fails(RuntimeError, "mismatch in length of strides and shape", M, (2, 2), (1,)),
        fails(
            RuntimeError,
            r"sizes \[3, 3\], strides \[3, 1\], storage offset 0, and itemsize 8 requiring a "
            "storage size of 72 are out of bounds for storage of size 48",
            M,
            (3, 3),
            (3, 1),
        ),
        fails(RuntimeError, "Negative strides are not supported at the moment", M, (3,), (-1,)),
        fails(RuntimeError, "invalid storage offset -1", M, (3,), (1,), -1),
    ),
    # Finite differences would lay the input out afresh: see test_views.py for these gradients.
    case(
        "as_strided",
        calls(
            (T((3, 4), strides="transposed"), (2, 3), (1, 2)),
            (T((2, 3), strides="sliced"), (2, 3), (6, 2)),
        ),
        gradient=False,
    ),
    case("detach", calls((M,), (TURNED,)), gradient=False),
    case("select_backward", calls((T((3,)), (2, 3), 0, 1), (T((2,)), (2, 3), -1, -1)),
         torch="ops.aten.select_backward", view=False),
    case("slice_backward", calls((T((2, 2)), (2, 5), 1, 1, 5, 2), (T((1, 3)), (2, 3), 0, -1, 9, 1)),
         fails(RuntimeError, "slice step must be positive", T((2, 2)), (2, 5), 1, 1, 5, -2),
         torch="ops.aten.slice_backward", view=False),
    case("diagonal_backward", calls((T((2,)), (2, 3), 0, 0, 1), (T((2, 2)), (2, 2, 3), 1, 1, 2)),
         torch="ops.aten.diagonal_backward", view=False),
]  # fmt: skip
