"""Samples of reductions and scans."""

from __future__ import annotations

import math
from typing import Any

from plugrad.plugins.cases import FLOATS, D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import REAL_AND_COMPLEX, REALS

X = T((3, 4))
CUBE = T((2, 3, 2))

RANGE = OpError(
    OpSample((X, 2)),
    IndexError,
    r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
)


def twice(**kwargs: Any) -> OpError:
    return OpError(
        OpSample((X,), {"dim": (0, -2), **kwargs}),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    )


def over_dims(tensor: T = X, empty: bool = True, **kwargs: Any) -> list[OpSample]:
    """Full and partial reductions of matrices, 0-dim, empty and strided tensors."""
    low, high, unique = tensor.low, tensor.high, tensor.unique
    cube = T((2, 3, 2), low, high, unique=unique)
    samples = [
        OpSample((tensor,), kwargs, "all"),
        OpSample((tensor,), {"dim": 0, **kwargs}, "dim 0"),
        OpSample((tensor,), {"dim": -1, "keepdim": True, **kwargs}, "keepdim"),
        OpSample((cube,), {"dim": (0, 2), **kwargs}, "two dims"),
        OpSample((cube,), {"dim": (-1, 0), "keepdim": True, **kwargs}, "two dims kept"),
        OpSample(
            (T((3, 4), low, high, strides="transposed", unique=unique),), {"dim": 1, **kwargs}
        ),
        OpSample((T((2, 3), low, high, strides="sliced", unique=unique),), kwargs, "sliced"),
        OpSample((T((), low, high),), kwargs, "0-dim"),
        OpSample((T((), low, high),), {"dim": -1, **kwargs}, "0-dim over -1"),
        OpSample((T((2, 0)),), {"dim": 0, **kwargs}, "empty result"),
    ]
    if empty:
        samples.append(OpSample((T((0, 3)),), kwargs, "empty"))
        samples.append(OpSample((T((0, 3)),), {"dim": 0, **kwargs}, "over nothing"))
    return samples


def along_dim(tensor: T = X, **kwargs: Any) -> list[OpSample]:
    """Along one dimension, which must be given."""
    low, high, unique = tensor.low, tensor.high, tensor.unique
    return [
        OpSample((tensor, 0), kwargs, "dim 0"),
        OpSample((tensor, -1), kwargs, "dim -1"),
        OpSample((T((2, 3, 2), low, high, unique=unique), 1), kwargs, "middle"),
        OpSample((T((3, 4), low, high, strides="transposed", unique=unique), 1), kwargs, "strided"),
        OpSample((T((), low, high), 0), kwargs, "0-dim"),
        OpSample((T((2, 0)), 0), kwargs, "empty result"),
    ]


def kept(samples: list[OpSample]) -> list[OpSample]:
    return [*samples, OpSample(samples[0].args, {**samples[0].kwargs, "keepdim": True}, "keepdim")]


DISTINCT = T((3, 4), unique=True)
NONZERO = T((3, 4), 0.5, 2)
ZEROS = T(values=[[1.0, 0.0, 2.0], [3.0, 4.0, 5.0], [0.0, 0.0, 6.0]])
CAST = OpSample((X,), {"dim": 1, "dtype": D("float32")}, "dtype")
EMPTY_EXTREMUM = "Expected reduction dim to be specified for input.numel"


def empty_errors(name: str, error: type[Exception]) -> list[OpError]:
    return [
        OpError(OpSample((T((0, 3)),)), error, EMPTY_EXTREMUM),
        OpError(
            OpSample((T((0, 3)), 0)),
            IndexError,
            rf"{name}\(\): Expected reduction dim 0 to have non-zero size.",
        ),
    ]


def extremum(op: str) -> list[OpCase]:
    """`max`: full, along a dimension, of two tensors."""
    return [
        OpCase(op, [OpSample((DISTINCT,)), OpSample((T(()),))], dtypes=(*REALS, "bool")),
        OpCase(
            op,
            [*kept(along_dim(DISTINCT)), OpSample((DISTINCT,), {"dim": 1})],
            dtypes=(*REALS, "bool"),
            errors=[RANGE, *empty_errors(op, RuntimeError)],
        ),
        OpCase(op, [OpSample((X, T((4,))))], dtypes=(*REALS, "bool")),
    ]


CASES = [
    OpCase(
        "sum",
        [*over_dims(), OpSample((X,), {"dim": ()}, "no dims")],
        grad_dtypes=REAL_AND_COMPLEX,
        errors=[RANGE, twice()],
    ),
    OpCase(
        "nansum",
        [
            *over_dims(),
            OpSample((T(values=[1.0, math.nan, 2.0]),), name="nan"),
        ],
        dtypes=(*REALS, "bool"),
        second=False,
    ),
    OpCase(
        "mean",
        over_dims(),
        grad_dtypes=REAL_AND_COMPLEX,
        errors=[
            RANGE,
            OpError(
                OpSample((T((2,), dtype="int64"),)),
                RuntimeError,
                "Input dtype must be either a floating point or complex dtype. Got: Long",
            ),
        ],
    ),
    OpCase("sum", [CAST], dtypes=(*REALS, "bool"), gradient=False),
    OpCase("mean", [CAST], dtypes=(*REALS, "bool"), gradient=False),
    OpCase("cumsum", [CAST], dtypes=(*REALS, "bool"), gradient=False),
    OpCase(
        "prod",
        [
            OpSample((NONZERO,), name="all"),
            OpSample((NONZERO, 0), name="dim 0"),
            OpSample((NONZERO, -1, True), name="keepdim"),
            OpSample((ZEROS,), name="zeros"),
            OpSample((ZEROS, 0), name="zeros along 0"),
            OpSample((ZEROS, 1), {"keepdim": True}, "zeros along 1"),
            OpSample((T(values=[2.0, 0.0, 3.0]),), name="one zero"),
            OpSample((T(values=[2.0, 0.0, 0.0]),), name="two zeros"),
            OpSample((T(()),), name="0-dim"),
            OpSample((T((0, 3)), 0), name="over nothing"),
            OpSample((T((2, 0)), 0), name="empty result"),
        ],
        grad_dtypes=REAL_AND_COMPLEX,
        low_precision=4.0,
        errors=[RANGE],
    ),
    *(
        OpCase(
            op,
            [
                *over_dims(DISTINCT, empty=False)[:7],
                OpSample((X, 1), {"correction": 0}, "correction 0"),
                OpSample((X,), {"dim": 1, "correction": 0.5, "keepdim": True}, "correction 0.5"),
                OpSample((X, False), name="biased"),
                OpSample((X, 1, False), name="dim biased"),
                OpSample((X, (0, 1), True, True), name="dims kept"),
            ],
            dtypes=(*FLOATS, "complex64", "complex128", "int64"),
            grad_dtypes=REAL_AND_COMPLEX,
            low_precision=2.0,
        )
        for op in ("var", "std", "var_mean", "std_mean")
    ),
    *extremum("max"),
    *extremum("min"),
    *(
        OpCase(
            op,
            over_dims(DISTINCT, empty=False),
            dtypes=(*REALS, "bool"),
            errors=[RANGE, *empty_errors(op, RuntimeError)],
        )
        for op in ("amax", "amin")
    ),
    OpCase(
        "aminmax",
        [
            OpSample((DISTINCT,), name="all"),
            OpSample((DISTINCT,), {"dim": 1}, "dim 1"),
            OpSample((DISTINCT,), {"dim": 0, "keepdim": True}, "keepdim"),
        ],
        dtypes=(*REALS, "bool"),
    ),
    *(
        OpCase(
            op,
            [
                OpSample((DISTINCT,), name="all"),
                OpSample((DISTINCT, 0), name="dim 0"),
                OpSample((DISTINCT, -1, True), name="keepdim"),
                OpSample((DISTINCT,), {"keepdim": True}, "all kept"),
                OpSample((T(()),), name="0-dim"),
                OpSample((T(values=[1, 3, 3, 0, 0]),), name="ties"),
                OpSample((T((2, 0)), 0), name="empty result"),
            ],
            dtypes=REALS,
            gradient=False,
            errors=[
                RANGE,
                *empty_errors(op, IndexError),
                OpError(
                    OpSample((T((2,), dtype="bool"),)),
                    RuntimeError,
                    rf"{op}\(\): does not support bool input",
                ),
            ],
        )
        for op in ("argmax", "argmin")
    ),
    OpCase(
        "logsumexp",
        [
            *kept(along_dim()),
            OpSample((X, (0, 1)), name="both"),
            OpSample((T(values=[1000.0, 1000.5]), 0), name="large"),
        ],
        dtypes=(*REALS, "bool"),
        errors=[RANGE],
    ),
    OpCase("logsumexp", [OpSample((T((0, 3)), 0), name="of nothing")], gradient=False),
    OpCase(
        "linalg_vector_norm",
        [
            OpSample((NONZERO, order), {"dim": dim}, f"order {order} over {dim}")
            for order in (2, 1, 3, 0.5, 1.5, -1, math.inf, -math.inf)
            for dim in (None, 1)
        ],
        torch="linalg.vector_norm",
        dtypes=(*FLOATS, "complex64", "complex128", "int64"),
        low_precision=4.0,
        errors=[
            OpError(
                OpSample((T((2,), dtype="int64"),)),
                RuntimeError,
                "Expected a floating point or complex tensor as input. Got Long",
            ),
            OpError(
                OpSample((T((0,)), math.inf)),
                RuntimeError,
                "cannot compute the inf norm on an empty tensor",
            ),
        ],
    ),
    OpCase(
        "norm",
        [
            *over_dims(NONZERO),
            OpSample((X, 1, 0), name="p 1"),
            OpSample((X, "fro"), {"dim": 1}, "fro"),
            OpSample((X,), {"p": math.inf, "dim": 1, "keepdim": True}, "inf"),
        ],
        dtypes=(*FLOATS, "complex64"),
        grad_dtypes=REAL_AND_COMPLEX,
        second=False,
    ),
    OpCase("norm", [OpSample((T((3, 4), 0.5, 2),), name="second")], dtypes=()),
    OpCase(
        "cumsum",
        along_dim(),
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="cumsum_",
        errors=[RANGE],
    ),
    OpCase(
        "cumprod",
        [
            *along_dim(NONZERO),
            OpSample((ZEROS, 0), name="zeros along 0"),
            OpSample((ZEROS, 1), name="zeros along 1"),
        ],
        grad_dtypes=REAL_AND_COMPLEX,
        inplace="cumprod_",
        low_precision=4.0,
        errors=[RANGE],
    ),
    *(
        OpCase(
            op,
            [*over_dims(), OpSample((T(values=[[0, 0], [0, 1], [1, 1]]), 1), name="table")],
            gradient=False,
            errors=[RANGE],
        )
        for op in ("any", "all")
    ),
    OpCase(
        "count_nonzero",
        [
            OpSample((T(values=[[0, 0], [0, 1], [1, 1]]),), name="all"),
            OpSample((T(values=[[0, 0], [0, 1], [1, 1]]), 1), name="dim 1"),
            OpSample((CUBE, (0, 2)), name="two dims"),
        ],
        gradient=False,
    ),
    OpCase(
        "median",
        [OpSample((DISTINCT,), name="all"), OpSample((T((5,), unique=True),), name="odd")],
        dtypes=REALS,
    ),
    OpCase("median", kept(along_dim(DISTINCT)[:4]), dtypes=REALS, errors=[RANGE]),
]
