"""Autocast inside of transforms. Oracle: the same without transforms."""

from __future__ import annotations

import plugrad
from plugrad.func import grad, jacrev, vmap

X, W = plugrad.randn(4, 3), plugrad.randn(5, 3)


def loss(w: plugrad.Tensor, x: plugrad.Tensor) -> plugrad.Tensor:
    with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        hidden = plugrad.nn.functional.linear(x, w)
        assert hidden.dtype is plugrad.bfloat16
        return hidden.float().square().sum()


def test_gradients_are_those_of_backward() -> None:
    w = W.clone().requires_grad_()
    loss(w, X).backward()
    found = grad(loss)(W, X)
    assert found.dtype is plugrad.float32
    assert found.tolist() == w.grad.tolist()


def test_mapped_and_nested() -> None:
    each = vmap(grad(loss), in_dims=(None, 0))(W, X)
    assert each.dtype is plugrad.float32
    plugrad.testing.assert_close(each.sum(0), grad(loss)(W, X), atol=0.3, rtol=0.05)
    # The gradient's own gradient goes through the casts, too.
    second = grad(lambda w: grad(loss)(w, X).sum())(W)
    assert second.dtype is plugrad.float32
    assert second.abs().sum().item() > 0


def test_a_region_around_transforms_reaches_inside() -> None:
    with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        matrix = jacrev(lambda w: X[0] @ w.T)(W)
    assert matrix.shape == (5, 5, 3)


def test_no_region_is_left_behind() -> None:
    grad(loss)(W, X)
    assert (X @ W.T).dtype is plugrad.float32
    assert not plugrad.is_autocast_enabled("cpu")
