"""Compiled loops of layers, on small arrays that do not use them otherwise.

The oracle is NumPy's functions, which take their place where there is no numba.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_cpu.compiled import loops
from plugrad_cpu.kernels import attention, pooling

Array = np.ndarray[Any, Any]


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def attention_loops() -> Any:
    found = loops("attention")
    if found is None:
        pytest.skip("there is no numba")
    return found


class TestAttention:
    """Against NumPy's functions, which compute with the same products."""

    # Fewer rows than keys are turned around for; parts of a head; several whole heads.
    @pytest.mark.parametrize(("rows", "block"), [(5, 1 << 18), (70, 4000), (70, 1 << 16)])
    @pytest.mark.parametrize(
        "kind", ["all", "causal", "booleans", "numbers", "one row", "expanded"]
    )
    def test_compute_what_numpy_does(
        self, monkeypatch: pytest.MonkeyPatch, rows: int, block: int, kind: str
    ) -> None:
        columns = 130
        query, grad = (random(2, 3, rows, 6, seed=n).astype(np.float32) * 3 for n in (0, 3))
        key, value = (random(2, 3, columns, 6, seed=n).astype(np.float32) for n in (1, 2))
        if kind != "causal":
            # How far nan goes there, depends on the blocks.
            query[1, 2, 3] = np.inf
        mask: Any = None
        if kind == "booleans":
            mask = random(2, 1, rows, columns, seed=9) > 0
            mask[1, 0, 4] = False
        elif kind == "numbers":
            mask = random(3, rows, columns, seed=9).astype(np.float32) * 60
            mask[1, 0], mask[2, 4] = -np.inf, np.nan
        elif kind == "one row":
            mask = random(1, columns, seed=9) > 0
        elif kind == "expanded":
            mask = np.broadcast_to(random(2, 1, 1, columns, seed=9) > 0, (2, 3, rows, columns))
        wanted = (True, True, True, mask is not None and mask.dtype != np.bool_)
        monkeypatch.setattr(attention, "_COMPILED_BLOCK", block)
        found = []
        for used in (attention_loops(), None):
            monkeypatch.setattr(attention, "loops_for", lambda name, count, used=used: used)
            how = (kind == "causal", 0.5)
            with np.errstate(all="ignore"):
                out, sums = attention.attention(query, key, value, mask, *how)
                given = (grad, query, key, value, mask, out, sums)
                found.append([out, sums, *attention.attention_backward(*given, *how, wanted)])
        for ours, theirs in zip(*found, strict=True):
            if theirs is None:
                assert ours is None
            else:
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_exponentials_are_exact_to_the_last_place(self) -> None:
        x = np.linspace(-87.2, 88, 100_003, dtype=np.float32)
        exact = np.exp(x.astype(np.float64))
        found = x.copy()
        attention_loops().weigh_again(
            found.reshape(1, 1, -1), x.size, x.size, np.zeros((1, 1, 1), np.float32)
        )
        assert np.max(np.abs(found - exact) / np.spacing(exact.astype(np.float32))) < 1.05


# Compiled loops, where there is numba, and NumPy's functions; the oracle is the kernel that looks
# for positions, too.
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("stride", range(1, 7))
def test_maxima_of_signals_need_no_positions(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, stride: int
) -> None:
    monkeypatch.setattr(pooling, "loops_for", lambda name, _: loops(name) if compiled else None)
    numbers = np.random.default_rng(0).normal(size=(2, 3, 19)).astype(np.float32)
    numbers[0, 0, 7], numbers[0, 1, :], numbers[1, 2, 3:9] = np.nan, -np.inf, np.inf
    x = plugrad.from_numpy(numbers)
    for kernel, dilation, ceil_mode in itertools.product((1, 2, 3, 5), (1, 2), (False, True)):
        for padding in range(kernel // 2 + 1):
            how = (kernel, stride, padding, dilation, ceil_mode)
            found = plugrad.max_pool1d(x, *how)
            wanted = plugrad.max_pool1d_with_indices(x, *how)[0]
            np.testing.assert_array_equal(found.numpy(), wanted.numpy(), str(how))
