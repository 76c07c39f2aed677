"""Autocast on JAX's arrays, eager and in captured steps."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
import plugrad_jax


@pytest.fixture
def weight() -> Any:
    return plugrad.ones(2, 2, device="jax", requires_grad=True)


def test_operators_run_in_the_dtypes_of_the_lists(weight: Any) -> None:
    x = plugrad.ones(2, 2, device="jax")
    with plugrad.autocast("jax"):
        product = x @ weight
        assert product.dtype is plugrad.bfloat16
        assert product.exp().dtype is plugrad.float32
        loss = product.sum()
    assert loss.dtype is plugrad.float32
    loss.backward()
    assert weight.grad.dtype is plugrad.float32
    assert weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_region_of_another_device_does_nothing(weight: Any) -> None:
    with plugrad.autocast("cpu"):
        assert (weight @ weight).dtype is plugrad.float32


def test_a_captured_step_is_made_anew_in_a_region(weight: Any) -> None:
    x = plugrad.ones(2, 2, device="jax")
    step = plugrad_jax.jit(lambda x: (x @ weight).detach())
    assert step(x).dtype is plugrad.float32
    with plugrad.autocast("jax"):
        assert step(x).dtype is plugrad.bfloat16
        with plugrad.autocast("jax", plugrad.float16):
            assert step(x).dtype is plugrad.float16
    assert step(x).dtype is plugrad.float32


def test_a_captured_step_uses_the_weights_that_there_are(weight: Any) -> None:
    x = plugrad.ones(2, 2, device="jax")
    step = plugrad_jax.jit(lambda x: (x @ weight).detach())
    with plugrad.autocast("jax"):
        x @ weight  # the cast that is kept is none of the program's
        step(x)
        with plugrad.no_grad():
            weight.mul_(2)
        assert step(x).tolist() == [[4.0, 4.0], [4.0, 4.0]]
        plugrad.clear_autocast_cache()
        assert (x @ weight).tolist() == [[4.0, 4.0], [4.0, 4.0]]
