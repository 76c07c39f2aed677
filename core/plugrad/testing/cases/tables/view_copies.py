"""Samples of the operators that copy what a view operator gives."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import D, T
from plugrad.testing.cases.inputs import CUBE, SCALAR, TURNED, M, call, calls, case, fails

# PyTorch has no gradients of these for complex numbers.
REAL: dict[str, Any] = {
    "dtypes": ("float32", "bfloat16", "int64", "bool"),
    "grad_dtypes": ("float64",),
}

CASES = [
    case("alias_copy", calls((M,), (TURNED,))),
    case("detach_copy", calls((TURNED,)), gradient=False),
    case("as_strided_copy", calls((M, (2, 2), (1, 2)), (M, (2,), (1,), 1))),
    case("diagonal_copy", calls((M,), (CUBE, 1, 0, 2))),
    case("expand_copy", [*calls((T((2, 1)), (3, 2, -1))), call(T((1,)), (2,), implicit=True)]),
    case(
        "narrow_copy",
        calls((CUBE, 1, 1, 2), (M, -1, 0, 0)),
        fails(
            RuntimeError,
            r"narrow_copy\(\): dim must be below 2, the number of",
            *(M, 2, 0, 1),
            differs=True,
        ),
    ),
    case("permute_copy", calls((CUBE, (2, 0, 1)))),
    case("select_copy", calls((CUBE, 1, -1)), **REAL),
    case("slice_copy", calls((M,), (CUBE, 2, 1, 4, 2)), **REAL),
    case("split_copy", calls((CUBE, 3, 2), (M, 1))),
    case("split_with_sizes_copy", calls((CUBE, (1, 3), 2))),
    case("squeeze_copy", calls((T((1, 2, 1)),), (T((1, 2, 1)), 0), (T((1, 2, 1)), (0, 2)))),
    case("t_copy", calls((M,), (T((2,)),))),
    case("transpose_copy", calls((CUBE, 0, 2))),
    case("unbind_copy", calls((M,), (CUBE, 2))),
    case("unfold_copy", calls((CUBE, 2, 2, 1))),
    case("unsqueeze_copy", calls((M, 1), (SCALAR, 0))),
    case("view_copy", calls((M, (3, 2)), (CUBE, (-1,)))),
    case(
        "view_as_complex_copy",
        calls((T((3, 2), requires_grad=False),)),
        dtypes=("float32",),
        gradient=False,
    ),
    case(
        "view_copy",
        calls(*[(T((2, 3), dtype="float32"), D(to)) for to in ("int32", "float32", "int8")]),
        dtypes=("float32",),
        grad_dtypes=(),
        gradient=False,
    ),
    case(
        "view_as_real_copy",
        calls((T((2, 3), dtype="complex128"),)),
        dtypes=("complex64",),
        grad_dtypes=("complex128",),
    ),
]
