"""Composite operators cast with a graph: every operand gets a gradient."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "atan2": lambda lib, a, b: lib.atan2(a, b),
    "block_diag": lambda lib, a, b: lib.block_diag(a, b),
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "column_stack": lambda lib, a, b: lib.column_stack([a, b]),
    "copysign": lambda lib, a, b: lib.copysign(a, b),
    "dstack": lambda lib, a, b: lib.dstack([a, b]),
    "hstack": lambda lib, a, b: lib.hstack([a, b]),
    "hypot": lambda lib, a, b: lib.hypot(a, b),
    "where": lambda lib, a, b: lib.where(a > 0, a, b),
    "logaddexp": lambda lib, a, b: lib.logaddexp(a, b),
    "maximum": lambda lib, a, b: lib.maximum(a, b),
    "mul": lambda lib, a, b: a * b,
    "norm": lambda lib, a, b: a.norm("nuc", dtype=lib.float64) + (b.norm("fro", dtype=lib.float64)),
    "pow": lambda lib, a, b: lib.pow(a, b),
    "rsub": lambda lib, a, b: lib.rsub(a, b),
    "true_divide": lambda lib, a, b: lib.true_divide(a, b),
    "vstack": lambda lib, a, b: lib.vstack([a, b]),
    "xlogy": lambda lib, a, b: lib.xlogy(a, b),
}


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float32", "float64")])
@pytest.mark.parametrize("case", CASES)
def test_both_inputs_get_pytorch_s_gradients(
    case: str, dtypes: tuple[str, str], torch_oracle: ModuleType
) -> None:
    found = []
    for lib in (plugrad, torch_oracle):
        a, b = (
            lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)
            for values, dtype in zip(
                ([[1.5, 2.0], [0.5, 3.0]], [[0.25, 1.0], [2.0, 0.75]]), dtypes, strict=True
            )
        )
        CASES[case](lib, a, b).sum().backward()
        assert a.grad is not None
        assert b.grad is not None
        assert (a.grad.dtype, b.grad.dtype) == (a.dtype, b.dtype)
        found.append([number for x in (a, b) for row in x.grad.tolist() for number in row])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize(
    "dtypes", [("int64", "float32"), ("float32", "float64"), ("float64", "float16")]
)
@pytest.mark.parametrize("sizes", [(2, 2, 0, 4), (2, 0, 2, 4), (0, 2, 2, 4)])
def test_products_of_nothing_have_gradients(
    sizes: tuple[int, int, int, int], dtypes: tuple[str, str], torch_oracle: ModuleType
) -> None:
    batch, rows, inner, columns = sizes
    found = []
    for lib in (plugrad, torch_oracle):
        a = lib.ones(batch, rows, inner, dtype=getattr(lib, dtypes[0]))
        b = lib.ones(batch, inner, columns, dtype=getattr(lib, dtypes[1])).requires_grad_()
        leaves = [x.requires_grad_() for x in (a, b) if x.is_floating_point()]
        product = lib.bmm(a, b)
        grads = lib.autograd.grad(product, leaves, lib.ones_like(product))
        found.append([(tuple(x.shape), str(x.dtype).partition(".")[2]) for x in (product, *grads)])
    assert found[0] == found[1]
