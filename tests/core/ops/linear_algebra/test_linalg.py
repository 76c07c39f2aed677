"""Matrix products: the shared suite, and what it cannot express."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.composite import linalg as decompositions
from plugrad.ops.composite.einsum import contract
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestLinalg(OpSuite):
    cases = family_cases("linalg")


def random(*shape: int, seed: int = 0) -> Any:
    return plugrad.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_mm_of_float16_accumulates_in_float32() -> None:
    # In float16 the sum would stop at 2048, where adding 1 has no effect.
    a = plugrad.ones(1, 4096, dtype=plugrad.float16)
    assert plugrad.mm(a, a.t()).item() == 4096


def test_addmm_with_beta_zero_does_not_read_its_input() -> None:
    nan = plugrad.full((2, 2), math.nan)
    out = plugrad.addmm(nan, plugrad.ones(2, 3), plugrad.ones(3, 2), beta=0)
    assert out.tolist() == [[3, 3], [3, 3]]


def test_mm_writes_into_out() -> None:
    out = plugrad.empty(2, 2)
    assert plugrad.mm(plugrad.ones(2, 3), plugrad.ones(3, 2), out=out) is out
    assert out.tolist() == [[3, 3], [3, 3]]


def test_matmul_of_matrices_records_mm() -> None:
    a = random(2, 2).requires_grad_()
    assert (a @ a).grad_fn.name() == "MmBackward0"
    assert plugrad.linear(a, a).grad_fn.name() == "LinearBackward0"


@pytest.mark.parametrize("path", [(0, 1, 0, 1), (1, 2, 0, 1), (0, 2, 0, 1)])
def test_einsum_gives_the_same_by_every_path(path: tuple[int, ...]) -> None:
    operands = [random(2, 3), random(3, 4, seed=1), random(4, 2, seed=2)]
    result = contract("ij,jk,kl->il", operands, path)
    a, b, c = (x.numpy() for x in operands)
    np.testing.assert_allclose(result.numpy(), a @ b @ c)


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (3,)])
def test_linear_decompositions_agree_with_the_kernels(shape: tuple[int, ...]) -> None:
    x, weight, bias = random(*shape), random(5, 3, seed=1), random(5, seed=2)
    out = plugrad.linear(x, weight, bias)
    again = decompositions.linear_by_matmul(x, weight, bias)
    np.testing.assert_allclose(out.numpy(), again.numpy())
    mask = (True, True, True)
    parts = plugrad.linear_backward(x, out, weight, mask)
    others = decompositions.linear_backward_by_matmul(x, out, weight, mask)
    for ours, theirs in zip(parts, others, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def test_linear_backward_computes_only_what_is_asked_for() -> None:
    x, weight = random(4, 3), random(5, 3)
    parts = plugrad.linear_backward(x, plugrad.linear(x, weight), weight, (False, True, False))
    assert parts[0] is None
    assert parts[2] is None
    assert tuple(parts[1].shape) == (5, 3)
