"""Attention: the shared suite, and what it cannot express: many blocks, memory, dropout, vmap.

The oracle is softmax(query @ key.T) @ value in NumPy.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.composite import attention as decompositions
from plugrad.testing.cases import family_cases
from plugrad_cpu.kernels import attention as kernels
from tests.core.ops.harness import OpSuite

Array = np.ndarray[Any, Any]


class TestAttention(OpSuite):
    cases = family_cases("attention")


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def expected(
    query: Array, key: Array, value: Array, taken: Any = True, grad: Any = None
) -> list[Array]:
    """The result, and with a cotangent of it the gradients of the three."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores) * taken
    weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    found = [weights @ value]
    if grad is not None:
        to_weights = grad @ value.swapaxes(-1, -2)
        to_scores = weights * (to_weights - (weights * to_weights).sum(-1, keepdims=True))
        to_scores = to_scores / np.sqrt(query.shape[-1])
        found += [to_scores @ key, to_scores.swapaxes(-1, -2) @ query]
        found.append(weights.swapaxes(-1, -2) @ grad)
    return found


def both_ways(monkeypatch: pytest.MonkeyPatch, decomposed: bool, block: int) -> tuple[Any, Any]:
    """The kernels of the CPU, or the decompositions, with small blocks."""
    if not decomposed:
        monkeypatch.setattr(kernels, "_BLOCK", block)
        return plugrad._scaled_dot_product_attention, (
            plugrad._scaled_dot_product_attention_backward
        )
    return decompositions.attention_by_blocks, decompositions.attention_backward_by_blocks


# Whole heads together, one by one, and parts of the rows of one.
@pytest.mark.parametrize(
    ("decomposed", "block"), [(False, 1 << 17), (False, 4000), (False, 1200), (True, 0)]
)
@pytest.mark.parametrize("kind", ["all", "causal", "mask"])
def test_blocks_make_no_difference(
    monkeypatch: pytest.MonkeyPatch, decomposed: bool, kind: str, block: int
) -> None:
    forward, backward = both_ways(monkeypatch, decomposed, block)
    rows, columns = 5, 1100 if decomposed else 300
    arrays = [random(2, 3, n, 2, seed=n) for n in (rows, columns, columns)]
    taken: Any = np.ones((rows, columns), bool)
    mask = None
    if kind == "causal":
        taken = np.tril(taken)
    elif kind == "mask":
        taken = random(2, 1, rows, columns, seed=9) > 0
        taken[1, 0, 3] = False
        mask = plugrad.from_numpy(taken)
    grad = random(2, 3, rows, 2, seed=8)
    wanted = expected(*arrays, taken, grad)
    query, key, value = (plugrad.from_numpy(array) for array in arrays)
    how = (kind == "causal", 1 / np.sqrt(2))
    out, sums = forward(query, key, value, mask, *how)
    flags = (True, True, True, False)
    cotangent = plugrad.from_numpy(grad)
    grads = backward(cotangent, query, key, value, mask, out, sums, *how, flags)
    for ours, theirs in zip((out, *grads[:3]), wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


def test_memory_grows_with_the_length_only() -> None:
    arrays = [random(1, 1, 2048, 4, seed=n).astype(np.float32) for n in range(3)]
    tensors = [plugrad.from_numpy(array).requires_grad_() for array in arrays]
    # Compiled loops are loaded before.
    plugrad.scaled_dot_product_attention(*tensors, is_causal=True).sum().backward()
    tracemalloc.start()
    plugrad.scaled_dot_product_attention(*tensors, is_causal=True).sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2048 * 2048 * 4 / 2


def test_narrow_floats_are_rounded_once_where_weights_are_dropped() -> None:
    plugrad.manual_seed(0)
    q, k, v = [plugrad.randn(4, 3).mul(3).bfloat16() for _ in range(3)]
    plugrad.manual_seed(1)
    found = plugrad.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    plugrad.manual_seed(1)
    wide = plugrad.scaled_dot_product_attention(q.float(), k.float(), v.float(), dropout_p=0.5)
    assert plugrad.equal(found, wide.bfloat16())


def test_mask_that_is_broadcast_gets_its_gradient() -> None:
    query, key, value = (plugrad.from_numpy(random(2, 3, 4, 2, seed=n)) for n in range(3))
    for shape in ((4, 4), (1, 4), (2, 1, 4, 1)):
        mask = plugrad.zeros(shape, dtype=plugrad.float64, requires_grad=True)
        plugrad.testing.gradcheck(
            lambda m: plugrad.scaled_dot_product_attention(query, key, value, m), (mask,)
        )


class TestDropout:
    def test_drops_weights_and_scales_the_others(self) -> None:
        plugrad.manual_seed(0)
        ones = plugrad.ones(1, 1000, 1)
        out = plugrad.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.25)
        assert abs(out.mean().item() - 1) < 0.01
        assert out.std().item() > 0

    def test_of_everything_gives_zero(self) -> None:
        x = plugrad.ones(2, 3)
        assert plugrad.scaled_dot_product_attention(x, x, x, dropout_p=1.0).abs().sum() == 0


@pytest.mark.parametrize("in_dims", [(0, None, None), (None, 1, 0), (2, 0, None)])
def test_gradients_under_vmap_keep_to_their_element(in_dims: tuple[int | None, ...]) -> None:
    arrays = [random(2, 3, 2, seed=n) for n in range(3)]
    tensors = [
        plugrad.from_numpy(array if dim is None else np.moveaxis(np.stack([array] * 2), 0, dim))
        for array, dim in zip(arrays, in_dims, strict=True)
    ]

    def gradients(*given: Any) -> Any:
        def loss(*args: Any) -> Any:
            return plugrad.scaled_dot_product_attention(*args).square().sum()

        return plugrad.func.grad(loss, argnums=(0, 1, 2))(*given)

    found = plugrad.vmap(gradients, in_dims=in_dims)(*tensors)
    alone = gradients(*(plugrad.from_numpy(array) for array in arrays))
    for batched, single in zip(found, alone, strict=True):
        np.testing.assert_allclose(batched.numpy(), np.stack([single.numpy()] * 2), atol=1e-12)


def test_causal_attention_in_blocks_of_rows_is_that_with_a_triangular_mask() -> None:
    generator = plugrad.Generator().manual_seed(0)
    found = []
    given = [plugrad.randn(3, 130, 4, generator=generator, dtype=plugrad.float64) for _ in range(3)]
    mask = plugrad.ones(130, 130, dtype=plugrad.bool).tril()
    for options in ({"is_causal": True}, {"attn_mask": mask}):
        parts = [part.clone().requires_grad_() for part in given]
        out = plugrad.scaled_dot_product_attention(*parts, **options)
        found.append([out, *plugrad.autograd.grad(out.square().sum(), parts)])
    for causal, masked in zip(*found, strict=True):
        plugrad.testing.assert_close(causal, masked)
