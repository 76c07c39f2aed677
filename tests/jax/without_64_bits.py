"""64-bit numbers while JAX has them off: run by test_precision.py, in a process of its own."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.dispatch.backends.active import find_backend


def test_floats_are_float32_and_integers_int64() -> None:
    x = plugrad.tensor([1.0, 2.0], device="jax")
    assert x.dtype is plugrad.float32
    assert (x * 2 + 1.5).dtype is plugrad.float32
    whole = plugrad.tensor([2**40, 1], device="jax")
    assert whole.dtype is plugrad.int64
    assert whole.sum().item() == 2**40 + 1
    assert (whole + 1).tolist() == [2**40 + 1, 2]
    assert (whole * 0.5).dtype is plugrad.float32
    assert x.argmax().dtype is plugrad.int64
    assert x.max(0).indices.dtype is plugrad.int64
    assert x.sort().indices.dtype is plugrad.int64


def test_float64_says_how_to_switch_it_on() -> None:
    wanted = (
        r"plugrad.float64 is not supported on 'jax' while JAX's 64-bit numbers are off: set "
        r"JAX_ENABLE_X64=1 or x64 = true under \[backends.jax\]"
    )
    with pytest.raises(TypeError, match=wanted):
        plugrad.tensor(np.ones(2), device="jax")
    with pytest.raises(TypeError, match=wanted):
        plugrad.ones(2, device="jax", dtype=plugrad.float64)
    with pytest.raises(TypeError, match=wanted):
        plugrad.ones(2, device="jax").double()
    with pytest.raises(TypeError, match="complex128"):
        plugrad.ones(2, device="jax").to(plugrad.complex128)
    with pytest.raises(TypeError, match=wanted):
        plugrad.from_dlpack(np.ones(2), device="jax")


def test_dtypes_are_listed_as_they_are() -> None:
    names = {dtype.name for dtype in find_backend("jax").backend.dtypes()}
    assert names >= {"int64", "float16", "bfloat16", "float32", "complex64", "bool", "uint8"}
    assert not names & {"float64", "complex128"}


def test_the_switch_of_jax_is_left_alone() -> None:
    plugrad.tensor([1, 2], device="jax").sum().item()
    assert not jax.config.jax_enable_x64
    assert jax.numpy.arange(3).dtype == np.int32


def test_a_classifier_learns() -> None:
    plugrad.manual_seed(0)
    weight = plugrad.randn(4, 3, device="jax", requires_grad=True)
    x = plugrad.randn(32, 4, device="jax")
    target = x[:, :3].argmax(1)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(x @ weight, target)
        loss.backward()
        with plugrad.no_grad():
            weight -= weight.grad
            weight.grad = None
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sums_of_16_bit_floats_are_kept_in_32(name: str) -> None:
    dtype = getattr(plugrad, name)
    x = plugrad.full((4096,), 1.0, device="jax", dtype=dtype)
    assert x.sum().dtype is dtype
    assert x.sum().item() == 4096.0
    assert x.mean().item() == 1.0
    assert (x @ x).item() == 4096.0
