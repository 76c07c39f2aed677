"""Attention in blocks is the CPU's, whatever the blocks, and no block is larger than allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad.plugins import package_kernels
from plugrad_cuda.kernels import array_kernels, attention
from tests.cuda.host_namespace import HostNamespace

FORWARD, BACKWARD = "_scaled_dot_product_attention", "_scaled_dot_product_attention_backward"
CPU = package_kernels("plugrad_cpu.kernels")
ROWS, COLUMNS = 50, 70


class Watched(HostNamespace):
    """Records the largest of all products."""

    largest = 0

    def matmul(self, a: Any, b: Any) -> Any:
        product = super().matmul(a, b)
        self.largest = max(self.largest, product.size)
        return product


def random(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


def masks() -> dict[str, Any]:
    some = random(2, 1, ROWS, COLUMNS) > 0
    some[1, 0, 3] = False  # a fully masked row
    return {"none": None, "shared": some[0], "of some heads": some, "added": random(ROWS, 1)}


# Several whole heads in a block, and parts of the rows of one.
@pytest.mark.parametrize("block", [3 * ROWS * COLUMNS, 1000])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", masks())
def test_results_and_gradients_are_the_cpus(
    monkeypatch: pytest.MonkeyPatch, mask: str, is_causal: bool, block: int
) -> None:
    monkeypatch.setattr(attention, "_BLOCK", block)
    ns = Watched()
    ours = array_kernels(ns)
    # Key and value of one head serve all of a batch's.
    query, key, value = random(2, 3, ROWS, 4), random(2, 1, COLUMNS, 4), random(2, 1, COLUMNS, 5)
    given = (query, key, value, masks()[mask])
    with np.errstate(all="ignore"):
        expected = CPU[FORWARD](*given, is_causal, 0.3)
        found = ours[FORWARD](*given, is_causal, 0.3)
        how = (is_causal, 0.3, (True, True, True, mask == "added"))
        grad = random(2, 3, ROWS, 5)
        expected += CPU[BACKWARD](grad, *given, *expected, *how)
        found += ours[BACKWARD](grad, *given, *found, *how)
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
        else:
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
    assert ns.largest <= block
