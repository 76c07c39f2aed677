"""Assigning `.data`: what the tensor takes over, what it keeps, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


def test_shape_and_dtype_follow() -> None:
    x = plugrad.ones(3, requires_grad=True)
    x.data = plugrad.zeros(2, 2, dtype=plugrad.float64)
    assert (x.shape, x.dtype, x.requires_grad) == ((2, 2), plugrad.float64, True)
    (x * 2).sum().backward()
    assert x.grad.dtype == plugrad.float64
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_the_version_stays_the_tensors_own() -> None:
    x, value = plugrad.ones(3), plugrad.zeros(3)
    x.add_(1)
    x.data = value
    value.add_(5)
    assert (x._version, value._version) == (1, 1)
    assert x.tolist() == [5.0, 5.0, 5.0]


def test_the_graph_does_not_notice() -> None:
    x = plugrad.ones(3, requires_grad=True)
    y = x * x
    x.data = plugrad.zeros(3)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_leaf_that_was_used_takes_gradients_of_its_new_dtype() -> None:
    x = plugrad.ones(3, requires_grad=True)
    used = x * 1
    x.data = plugrad.ones(3, dtype=plugrad.float64)
    (x * 2).sum().backward()
    assert x.grad.dtype == plugrad.float64
    assert used.grad_fn is not None


def test_the_device_follows(second_backend: str) -> None:
    x = plugrad.ones(3, requires_grad=True)
    used = x * 1
    x.data = plugrad.full((3,), 4.0, device=second_backend)
    assert x.device == plugrad.device(second_backend)
    assert x.is_leaf
    y = x * x
    assert y.device == x.device
    y.sum().backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [8.0, 8.0, 8.0]
    assert used.device == plugrad.get_default_device()


def test_kernels_of_the_new_backend_run(second_backend: str) -> None:
    x = plugrad.ones(1)
    x.data = plugrad.ones(1, device=second_backend)
    with plugrad.record_dispatch_trace() as events:
        x.exp()
    assert [event.key for event in events] == ["AutogradSecond", "Second"]


def test_a_tensor_without_data_is_no_data() -> None:
    no_data: Any = plugrad.tensor([1.0], device="meta")
    x = plugrad.ones(1)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = no_data
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        no_data.data = x


def test_integers_are_refused_where_gradients_are_asked_for() -> None:
    x = plugrad.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = plugrad.tensor([1])


def test_only_tensors_are_data() -> None:
    x = plugrad.ones(1)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3
