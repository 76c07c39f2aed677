"""plugrad inside of JAX's own transformations: one program, without a way back to Python."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
import numpy as np

import plugrad
import plugrad_jax
from plugrad_jax import from_jax, to_jax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


def loss_and_gradient(x: Any, w: Any) -> tuple[Any, Any]:
    weight = from_jax(w, requires_grad=True)
    loss = (from_jax(x) @ weight).tanh().square().sum()
    loss.backward()
    return to_jax(loss.detach()), to_jax(weight.grad)


def test_forward_and_backward_trace_into_one_program() -> None:
    jaxpr = jax.make_jaxpr(loss_and_gradient)(X, W)
    assert "callback" not in str(jaxpr)
    loss, gradient = jax.jit(loss_and_gradient)(X, W)
    expected = jax.value_and_grad(lambda w: jnp.square(jnp.tanh(X @ w)).sum())(jnp.asarray(W))
    np.testing.assert_allclose(loss, expected[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-5, atol=1e-6)


def test_a_traced_cross_entropy_takes_exponentials_once() -> None:
    """XLA would not detect that exp(log_softmax(x)) are the terms of the sum."""
    labels = jnp.asarray([2, -100, 0, 1])
    logits = jnp.asarray(np.linspace(-3, 3, 12, dtype=np.float32).reshape(4, 3))

    def value_and_gradient(logits: Any, labels: Any) -> tuple[Any, Any]:
        x = from_jax(logits, requires_grad=True)
        loss = plugrad.nn.functional.cross_entropy(x, from_jax(labels))
        loss.backward()
        return to_jax(loss.detach()), to_jax(x.grad)

    def by_hand(logits: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.abs(labels)[:, None] % 3, 1)
        return -jnp.where(labels[:, None] >= 0, chosen, 0).sum() / 3

    jaxpr = jax.make_jaxpr(value_and_gradient)(logits, labels)
    assert [equation.primitive.name for equation in jaxpr.eqns].count("exp") == 1
    with jax.checking_leaks():
        loss, gradient = jax.jit(value_and_gradient)(logits, labels)
    expected = jax.value_and_grad(by_hand)(logits)
    np.testing.assert_allclose(loss, expected[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3, 2)])
def test_a_traced_log_softmax_is_the_eager_one(dtype: str, shape: tuple[int, ...]) -> None:
    array = jnp.linspace(-200, 200, int(np.prod(shape))).reshape(shape).astype(dtype)

    def value_and_gradient(array: Any) -> tuple[Any, Any]:
        x = from_jax(array, requires_grad=True)
        out = x.log_softmax(-1)
        (out * x.detach()).sum().backward()
        return to_jax(out.detach()), to_jax(x.grad)

    for found, expected in zip(
        jax.jit(value_and_gradient)(array), value_and_gradient(array), strict=True
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_jax_differentiates_plugrad() -> None:
    def loss(w: Any) -> Any:
        return to_jax((from_jax(w).sin() * 2).sum())

    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(W)), 2 * np.cos(W), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(jnp.asarray(W)), 2 * np.cos(W), rtol=1e-6)


def test_jax_batches_plugrad() -> None:
    found = jax.vmap(lambda row: to_jax(from_jax(row).softmax(0)))(jnp.asarray(X))
    np.testing.assert_allclose(found, jax.nn.softmax(X, axis=1), rtol=1e-6)


def test_in_place_operators_and_views_are_pure_under_jit() -> None:
    @jax.jit
    def step(x: Any) -> Any:
        tensor = from_jax(x)
        tensor[0].mul_(2)
        tensor.view(-1)[4:].zero_()
        return to_jax(tensor)

    array = jnp.asarray(X)
    np.testing.assert_array_equal(step(array), [[0, 2, 4], [3, 0, 0]])
    np.testing.assert_array_equal(array, X)


def test_a_captured_step_inside_of_jit_is_part_of_the_program() -> None:
    double = plugrad_jax.jit(lambda x: x * 2)
    found = jax.jit(lambda x: to_jax(double(from_jax(x)) + 1))(jnp.asarray(X))
    np.testing.assert_array_equal(found, X * 2 + 1)
    assert double.traces == 0


def test_arrays_are_not_copied() -> None:
    array = jnp.ones(3)
    tensor = from_jax(array)
    assert to_jax(tensor) is array
    tensor.add_(1)
    np.testing.assert_array_equal(array, np.ones(3))
    np.testing.assert_array_equal(to_jax(tensor), np.full(3, 2))


def test_what_is_no_array_is_named() -> None:
    with pytest.raises(TypeError, match=r"from_jax\(\): expected a jax.Array, got ndarray"):
        from_jax(X)
    with pytest.raises(TypeError, match=r"to_jax\(\): the tensor is on device cpu"):
        to_jax(plugrad.ones(1))
    with pytest.raises(TypeError, match=r"to_jax\(\): expected a Tensor, got ndarray"):
        to_jax(X)


def test_after_a_trace_backward_has_its_threads_again() -> None:
    def gradient(array: Any) -> Any:
        x = from_jax(array, requires_grad=True)
        (x * x).sum().backward()
        return to_jax(x.grad)

    np.testing.assert_array_equal(jax.jit(gradient)(jnp.asarray(X)), 2 * X)
    assert plugrad.autograd.is_multithreading_enabled()
    names: list[str] = []
    x = plugrad.ones(2, device="jax:1", requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: names.append(threading.current_thread().name))
    y.sum().backward()
    assert names == ["plugrad-jax:1"]
