"""`resize_` and `set_`."""

from __future__ import annotations

from typing import Any

import pytest


def leaf(lib: Any) -> Any:
    return lib.arange(6.0).reshape(2, 3).requires_grad_()


def test_resize(lib: Any) -> None:
    x = lib.arange(6.0)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_([3]).tolist() == [0, 1, 2]
    y = lib.arange(2.0)
    y.resize_(5)
    assert y.shape == (5,)
    assert y[:2].tolist() == [0, 1]
    assert y._version == 1
    assert y.resize_as_(lib.ones(2, 2)).shape == (2, 2)
    assert y.resize_(0).shape == (0,)


def test_a_shape_that_stays_is_no_write(lib: Any) -> None:
    x = lib.arange(6.0)
    x.resize_(6).resize_as_(lib.ones(6))
    assert x._version == 0


def test_resize_of_an_inference_tensor(lib: Any) -> None:
    with lib.inference_mode():
        x = lib.ones(2, requires_grad=True)
        x.resize_(1)
        assert x.requires_grad
    assert x.shape == (1,)


def test_resize_of_what_requires_grad(lib: Any) -> None:
    for tensor in (leaf(lib), leaf(lib).clone()):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            tensor.resize_(2)


def test_set(lib: Any) -> None:
    x, y = lib.zeros(2), lib.ones(3)
    assert x.set_(y) is x
    y.add_(1)
    assert x.tolist() == [2, 2, 2]
    assert lib.ones(2).set_().shape == (0,)
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        x.set_(lib.ones(2, dtype=lib.float64))


def test_set_makes_a_leaf_another_one(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    edge = lib.autograd.graph.get_gradient_edge(x)
    out = x.clone()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.set_(lib.zeros(2))
    with lib.no_grad():
        x.set_(lib.zeros(2))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        lib.autograd.grad(out.sum(), x, retain_graph=True)
    (grad,) = lib.autograd.grad(out.sum(), edge)
    assert grad.tolist() == [1, 1]
