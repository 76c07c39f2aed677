"""What is cast, and which casts are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from tests.core.ops.against_torch.oracle import to_numpy
from tests.core.ops.harness import needs_torch, torch


def cast_of(weight: Any) -> Any:
    """The node that cast a weight for a product."""
    return (plugrad.ones(2, 2) @ weight).grad_fn.next_functions[1][0]


@pytest.fixture
def weight() -> Any:
    return plugrad.ones(2, 2, requires_grad=True)


def test_a_weight_is_cast_once_till_the_outermost_region_ends(weight: Any) -> None:
    with plugrad.autocast("cpu"):
        first = cast_of(weight)
        with plugrad.autocast("cpu"):
            assert cast_of(weight) is first
        assert cast_of(weight) is first
    with plugrad.autocast("cpu"):
        assert cast_of(weight) is not first


def test_a_cast_of_another_dtype_is_another_one(weight: Any) -> None:
    with plugrad.autocast("cpu"):
        assert (plugrad.ones(2, 2) @ weight).dtype is plugrad.bfloat16
        with plugrad.autocast("cpu", plugrad.float16):
            assert (plugrad.ones(2, 2) @ weight).dtype is plugrad.float16


def test_casts_are_forgotten_when_somebody_says_so(weight: Any) -> None:
    with plugrad.autocast("cpu"):
        first = cast_of(weight)
        plugrad.clear_autocast_cache()
        assert cast_of(weight) is not first


def test_casts_are_not_kept_without_the_cache(weight: Any) -> None:
    with plugrad.autocast("cpu", cache_enabled=False):
        assert not plugrad.is_autocast_cache_enabled()
        assert cast_of(weight) is not cast_of(weight)
    assert plugrad.is_autocast_cache_enabled()


def test_only_weights_are_kept(weight: Any) -> None:
    view = weight.view(2, 2)
    result = weight * 2
    with plugrad.autocast("cpu"):
        assert cast_of(view) is not cast_of(view)
        assert cast_of(result) is not cast_of(result)


@pytest.mark.parametrize("mode", [plugrad.no_grad, plugrad.inference_mode])
def test_a_cast_without_grad_mode_does_not_cut_the_weight_off(weight: Any, mode: Any) -> None:
    with plugrad.autocast("cpu"):
        with mode():
            assert not (plugrad.ones(2, 2) @ weight).requires_grad
        product = plugrad.ones(2, 2) @ weight
    product.sum().backward()
    assert weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_what_a_product_saves_is_narrow(weight: Any) -> None:
    x = plugrad.ones(2, 2)
    with plugrad.autocast("cpu"):
        assert (x @ weight).grad_fn._saved_self.dtype is plugrad.bfloat16


def test_float64_is_left_alone() -> None:
    x = plugrad.ones(2, 2, dtype=plugrad.float64)
    with plugrad.autocast("cpu"):
        assert (x @ x).dtype is plugrad.float64
        assert plugrad.nn.functional.mse_loss(x, x).dtype is plugrad.float64


def test_the_widest_dtype_is_promoted_to() -> None:
    wide, narrow = plugrad.ones(2), plugrad.ones(2, dtype=plugrad.bfloat16)
    with plugrad.autocast("cpu"):
        assert plugrad.cat([wide, narrow]).dtype is plugrad.float32
        assert plugrad.stack([narrow, narrow]).dtype is plugrad.bfloat16
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            plugrad.cat([narrow, wide.half()])


def test_what_is_written_to_keeps_its_dtype() -> None:
    x = plugrad.rand(3, 3)
    expected = plugrad.addmm(x, x, x)
    product = x @ x
    with plugrad.autocast("cpu"):
        assert plugrad.equal(x.clone().addmm_(x, x), expected)
        assert plugrad.equal(plugrad.mm(x, x, out=plugrad.empty(3, 3)), product)
        assert plugrad.is_autocast_enabled("cpu")


def test_decompositions_below_autograd_do_not_autocast() -> None:
    x = plugrad.rand(2, 3, 3)
    v = plugrad.rand(3)
    expected = plugrad.addmv(v, x[0], v)
    with plugrad.autocast("cpu"):
        assert plugrad.equal(plugrad.addmv(v, x[0], v), expected)


def test_a_trace_shows_what_is_cast() -> None:
    x = plugrad.ones(2, 2)
    with plugrad.autocast("cpu"), plugrad.record_dispatch_trace() as events:
        x.mm(x)
    found = [(event.kind, event.op.partition("::")[2], event.key) for event in events]
    assert found[:2] == [("call", "mm", "AutocastCPU"), ("call", "_to_copy", "AutogradCPU")]
    assert ("redispatch", "mm", "AutogradCPU") in found


def _step(library: Any, dtype: str) -> list[Any]:
    """The loss, and the gradients, of a small net of two layers."""
    rng = np.random.default_rng(0)

    def leaf(*shape: int) -> Any:
        values = rng.standard_normal(shape).astype("float32")
        return library.from_numpy(values).requires_grad_()

    x, target = leaf(8, 5).detach(), leaf(8, 3).detach()
    w1, b1, w2, b2 = leaf(16, 5), leaf(16), leaf(3, 16), leaf(3)
    functional = library.nn.functional
    with library.autocast("cpu", getattr(library, dtype)):
        hidden = functional.gelu(functional.linear(x, w1, b1))
        hidden = functional.layer_norm(hidden, (16,))
        out = functional.linear(hidden, w2, b2)
        loss = functional.mse_loss(functional.softmax(out, -1), target)
    loss.backward()
    return [loss, w1.grad, b1.grad, w2.grad, b2.grad]


@needs_torch
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_training_step_is_pytorchs(dtype: str) -> None:
    for ours, theirs in zip(_step(plugrad, dtype), _step(torch, dtype), strict=True):
        assert str(ours.dtype).replace("plugrad", "torch") == str(theirs.dtype)
        np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=0.1, atol=0.02)
