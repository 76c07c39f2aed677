"""Calls at the edge of what is allowed: the same result, or the same refusal. Oracle: PyTorch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad


def into(lib: Any, dtype: str) -> Any:
    return lib.empty(0, dtype=getattr(lib, dtype))


def gradient_of_mvlgamma_in_place(lib: Any) -> Any:
    x = lib.tensor([3.0, 4.0], requires_grad=True)
    y = x.clone()
    y.mvlgamma_(2)
    return lib.autograd.grad(y.sum(), x)


def pads(lib: Any) -> Any:
    return lib._C._nn if lib.__name__ == "torch" else lib


def _raises(error: type[Exception], call: Any) -> bool:
    try:
        call()
    except error:
        return True
    return False


def zeros_of_remainders(lib: Any, divisor: float) -> Any:
    x = lib.tensor([0.0, -0.0, 4.0, -4.0])
    return lib.remainder(x, divisor), lib.remainder(x, lib.full((4,), divisor)), x % divisor


def gradients_of_attention(lib: Any, heads: int) -> Any:
    query, key = (lib.ones(1, n, 2, 2, requires_grad=True) for n in (heads, 2))
    attention = lib.nn.functional.scaled_dot_product_attention
    return lib.autograd.grad(attention(query, key, key, enable_gqa=True).sum(), (query, key))


def tables(lib: Any, dtype: str) -> dict[str, Any]:
    table = lib.arange(6).to(getattr(lib, dtype)).reshape(3, 2)
    return {"rows": table, "columns": table.T.contiguous().T}


# Of a matrix and what is solved with it. PyTorch converts the results of some of them.
MATRICES: dict[str, Any] = {
    "cholesky": lambda lib, a, out: lib.cholesky(a, out=out),
    "linalg.cholesky": lambda lib, a, out: lib.linalg.cholesky(a, out=out),
    "cholesky_inverse": lambda lib, a, out: lib.cholesky_inverse(a, out=out) + 0,
    "cholesky_solve": lambda lib, a, out: lib.cholesky_solve(a, a, out=out),
    "geqrf": lambda lib, a, out: tuple(lib.geqrf(a, out=(out, out.clone()))),
    "linalg.inv": lambda lib, a, out: lib.linalg.inv(a, out=out),
    "linalg.pinv": lambda lib, a, out: lib.linalg.pinv(a, out=out),
    "linalg.cond": lambda lib, a, out: lib.linalg.cond(a, out=out),
    "linalg.tensorinv": lambda lib, a, out: lib.linalg.tensorinv(a, ind=1, out=out),
    "linalg.tensorsolve": lambda lib, a, out: lib.linalg.tensorsolve(a, a[0], out=out),
    "linalg.householder_product": lambda lib, a, out: lib.linalg.householder_product(
        a + 1, a[0], out=out
    ),
    "orgqr": lambda lib, a, out: lib.orgqr(a + 1, a[0], out=out),
}


def matrix_into(lib: Any, name: str, dtype: str) -> Any:
    return MATRICES[name](lib, 4 * lib.eye(2), into(lib, dtype))


CALLS: dict[str, Any] = {
    **{
        f"{name} into {dtype}": lambda lib, name=name, dtype=dtype: matrix_into(lib, name, dtype)
        for name in MATRICES
        for dtype in ("float32", "float64", "complex64", "int64", "float16")
    },
    **{
        f"tensordot over {dims}": lambda lib, dims=dims: lib.tensordot(
            lib.ones(2, 3), lib.ones(3, 2), dims=lib.tensor(dims)
        )
        for dims in (1.0, 1, 1.5, True, -1, [1], [[1], [0]])
    },
    "chain_matmul into float64": lambda lib: _raises(
        RuntimeError, lambda: lib.chain_matmul(lib.eye(2), lib.eye(2), out=into(lib, "float64"))
    ),
    **{
        f"chain_matmul of one into {dtype}": lambda lib, dtype=dtype: lib.chain_matmul(
            lib.eye(2), out=into(lib, dtype)
        )
        for dtype in ("float64", "int64")
    },
    **{
        f"{name} beyond {bound}": lambda lib, name=name, bound=bound: getattr(
            lib.nn.functional, name
        )(lib.ones(2), bound)
        for name in ("hardshrink", "softshrink")
        for bound in (0.5 - 1j, 0.5 + 0j)
    },
    **{
        f"{name} of no {dtype} matrix": lambda lib, name=name, dtype=dtype: getattr(
            lib.linalg, name
        )(lib.ones(0, 3, 4, dtype=getattr(lib, dtype)))
        for name in ("lu", "lu_factor", "lu_factor_ex")
        for dtype in ("uint8", "int64")
    },
    **{
        f"abs of {name} into {dtype}": lambda lib, x=x, dtype=dtype: lib.abs(
            lib.tensor(x), out=into(lib, dtype)
        )
        for name, x in (("floats", [-1.0]), ("integers", [-1]), ("complex", [3 + 4j]))
        for dtype in ("float32", "float64", "int32", "int64", "complex64", "complex128")
    },
    "absolute": lambda lib: lib.absolute(lib.tensor([3 + 4j]), out=into(lib, "float64")),
    "lu": lambda lib: lib.lu(lib.eye(2), out=(into(lib, "int64"), into(lib, "int32"))),
    "native_batch_norm": lambda lib: lib.native_batch_norm(
        lib.ones(2, 3), None, None, None, None, True, 0.1, 1e-5,
        out=(into(lib, "float32"), into(lib, "float64"), into(lib, "float32")),
    ),
    "reflection_pad1d": lambda lib: pads(lib).reflection_pad1d(
        lib.ones(1, 3), 1, out=into(lib, "float64")
    ),
    "reflection_pad2d": lambda lib: pads(lib).reflection_pad2d(
        lib.ones(1, 3, 3), 1, out=into(lib, "float64")
    ),
    "replication_pad1d": lambda lib: pads(lib).replication_pad1d(
        lib.ones(1, 3), 1, out=into(lib, "float64")
    ),
    "one side": lambda lib: pads(lib).reflection_pad1d(lib.ones(1, 3), [1]),
    "one side, replicated": lambda lib: pads(lib).replication_pad2d(lib.ones(1, 3, 3), [1]),
    "nansum": lambda lib: lib.nansum(lib.ones(2).to(lib.float8_e4m3fn)),
    "nanmean": lambda lib: lib.nanmean(lib.ones(2).to(lib.float8_e4m3fn)),
    "cholesky_inverse": lambda lib: lib.cholesky_inverse(
        lib.stack([lib.eye(2), lib.tensor([[1.0, 0.0], [1.0, 0.0]])])
    ),
    "linalg.vander": lambda lib: lib.linalg.vander(lib.ones(2, dtype=lib.float16)),
    "masked.norm": lambda lib: lib.masked.norm(lib.arange(3), 2, 0, dtype=lib.float32),
    "masked.norm, least": lambda lib: lib.masked.norm(
        lib.arange(3), float("-inf"), 0, mask=lib.arange(3) > 1
    ),
    "masked.norm, least of complex numbers": lambda lib: lib.masked.norm(
        lib.ones(2, 2, dtype=lib.complex64), float("-inf"), 0, mask=lib.ones(2).bool()
    ),
    "masked.norm, least, under a mask that does not fit": lambda lib: lib.masked.norm(
        lib.ones(2, 1).int(), float("-inf"), 0, mask=lib.ones(2, 3).bool()
    ),
    **{
        f"{name} of a mask": lambda lib, name=name: getattr(lib.tensor([True]), name)(0)
        for name in ("mvlgamma", "mvlgamma_")
    },
    **{
        f"affine_grid_generator of {dtype}": lambda lib, dtype=dtype: lib.affine_grid_generator(
            lib.ones(2, 2, 3, dtype=getattr(lib, dtype)), [2, 1, 3, 2], False
        )
        for dtype in ("int8", "uint8", "int64", "bool", "float64")
    },
    **{
        f"solve_triangular of {a} and {b}": lambda lib, a=a, b=b: lib.linalg.solve_triangular(
            lib.tensor([[2, 0], [1, 4]], dtype=getattr(lib, a)),
            lib.tensor([[1], [-2]], dtype=getattr(lib, b)),
            upper=False,
        )
        for a, b in (
            ("complex128", "int64"), ("float32", "bool"), ("float32", "float64"),
            ("float64", "float32"), ("int64", "float32"),
        )
    },
    **{
        f"_safe_softmax of {dtype}, {n} columns": lambda lib, dtype=dtype, n=n: lib._safe_softmax(
            lib.zeros(2, n, dtype=getattr(lib, dtype)), 1
        )
        for dtype in ("bool", "int64", "float16", "float32")
        for n in (0, 2)
    },
    **{
        f"lu_unpack of {sizes} and {pivots}": lambda lib, sizes=sizes, pivots=pivots: lib.lu_unpack(
            lib.ones(sizes), lib.tensor(pivots, dtype=lib.int32)
        )
        for sizes, pivots in (
            ((2, 1), [2, 9]), ((0, 3), [2, 2]), ((1, 3, 3), [2, 3, 3]), ((3, 0), [2]),
        )
    },
    **{
        f"masked.{name} along {dim}": lambda lib, name=name, dim=dim: getattr(lib.masked, name)(
            lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]),
            *([2.0] if name == "normalize" else []),
            dim,
            mask=lib.tensor([[True, False, True], [True, True, False]]),
        )
        for name in (
            "softmax", "log_softmax", "softmin", "median", "cumsum", "cumprod", "normalize",
        )
        for dim in (None, 0, -1, (1,))
    },
    "masked.logaddexp of several dtypes": lambda lib: lib.masked.logaddexp(
        lib.ones(2, dtype=lib.bfloat16), lib.ones(2), input_mask=lib.tensor([True, False])
    ),
    **{
        f"unravel_index of {dtype}": lambda lib, dtype=dtype: lib.unravel_index(
            lib.tensor([0, 3], dtype=getattr(lib, dtype)), (2, 2)
        )
        for dtype in ("uint8", "int16", "int32", "int64")
    },
    **{
        f"embedding of {dtype}, renormalised": lambda lib, dtype=dtype: lib.nn.functional.embedding(
            lib.tensor([0, 2], dtype=getattr(lib, dtype)), lib.ones(3, 2), max_norm=1.0
        )
        for dtype in ("int32", "int64")
    },
    **{
        f"attention of {heads} heads": lambda lib, heads=heads: gradients_of_attention(lib, heads)
        for heads in (0, 4)
    },
    "cov": lambda lib: lib.cov(lib.ones(2, 2), aweights=lib.tensor([1.0, float("nan")])),
    **{
        f"block_diag of a number of {b}": lambda lib, a=a, b=b: lib.block_diag(
            lib.ones(1, 2, dtype=getattr(lib, a)), lib.ones((), dtype=getattr(lib, b))
        )
        for a, b in (
            ("complex64", "complex128"), ("float16", "float64"), ("int64", "float32"),
        )
    },
    **{
        f"poisson_nll_loss of {a} and {b}": lambda lib, a=a, b=b: (
            lib.nn.functional.poisson_nll_loss(
                lib.ones(2, dtype=getattr(lib, a)), lib.tensor([1, 3], dtype=getattr(lib, b)),
                full=True,
            )
        )
        for a, b in (("bfloat16", "uint8"), ("float16", "int64"), ("float32", "float64"))
    },
    "affine_grid_generator of a negative size": lambda lib: lib.affine_grid_generator(
        lib.ones(1, 2, 3), [-1, 2, 1, 3], True
    ),
    **{
        f"matrix_exp of {number}": lambda lib, number=number: lib.linalg.matrix_exp(
            lib.tensor([[number]])
        )
        for number in (float("inf"), float("-inf"), complex("-inf"), 2.0)
    },
    # Which bags are returned depends on how the table lies in memory.
    **{
        f"_embedding_bag, {layout}, {dtype}": lambda lib, layout=layout, dtype=dtype: (
            lib._embedding_bag(
                tables(lib, dtype)[layout], lib.tensor([0, 2, 1]), lib.tensor([0, 2])
            )
        )
        for layout in ("rows", "columns")
        for dtype in ("float32", "float64")
    },
    # A flag is a number, too, where there is more than one form.
    "quantile": lambda lib: lib.quantile(lib.tensor([0.25, 0.5]), True),
    "pinv": lambda lib: lib.linalg.pinv(lib.eye(2), True),
    "matrix_rank": lambda lib: lib.linalg.matrix_rank(lib.eye(2), rtol=True),
    "bernoulli": lambda lib: lib.bernoulli(lib.zeros(2), True),
    "histogram": lambda lib: lib.histogram(lib.tensor([0.5]), 2, range=(False, True)).hist,
    **{
        f"histogram with weights of shape {shape}": lambda lib, shape=shape: lib.histogram(
            lib.tensor([[0.5, 1.5], [0.25, 1.0]]), 2, range=(0.0, 2.0),
            weight=lib.arange(1.0, 5.0).reshape(shape),
        ).hist
        for shape in ((2, 2), (4,), (1, 4))
    },
    "histogram with too few weights": lambda lib: lib.histogram(lib.ones(4), weight=lib.ones(3)),
    **{
        f"fractional_max_pool{spatial}d of no channels": lambda lib, spatial=spatial: getattr(
            lib.nn.functional, f"fractional_max_pool{spatial}d"
        )(lib.ones(0, *[4] * spatial), 2, 2)
        for spatial in (2, 3)
    },
    "shares of nothing": lambda lib: lib._sample_dirichlet(lib.ones(0, 1, 4)),
    "linalg.cond of a complex order, refused": lambda lib: "refused"
    if _raises(RuntimeError, lambda: lib.linalg.cond(lib.eye(2), 1j))
    else None,
    "a storage of a number of NumPy's": lambda lib: len(lib.FloatStorage(np.int64(2))),
    "heaviside": lambda lib: lib.heaviside(lib.ones(2, requires_grad=True), lib.ones(2))
    .sum()
    .backward(),
    "mvlgamma_": gradient_of_mvlgamma_in_place,
    "remainder": lambda lib: zeros_of_remainders(lib, 2.0),
    "remainder of a negative divisor": lambda lib: zeros_of_remainders(lib, -2.0),
    "graphsafe_get_state": lambda lib: lib.Generator().graphsafe_get_state(),
    "graphsafe_set_state": lambda lib: lib.Generator().graphsafe_set_state(3),
    "set_offset": lambda lib: lib.Generator().set_offset("a"),
}  # fmt: skip


def outcome(lib: Any, name: str) -> tuple[str, str]:
    try:
        return "result", repr(CALLS[name](lib)).replace("plugrad.", "torch.")
    except Exception as error:
        words = str(error).split("\n")[0].replace("plugrad::", "aten::")
        return type(error).__name__.strip("_"), words.replace("plugrad.", "torch.")


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree(torch_oracle: ModuleType, name: str) -> None:
    assert outcome(plugrad, name) == outcome(torch_oracle, name)
