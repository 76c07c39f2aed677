"""Indices that are tensors within a captured step: their values are not known, and they index."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

import plugrad
import plugrad_jax

POSITIONS = [0, 2, -1]


def table() -> Any:
    return plugrad.arange(12.0).reshape(3, 4).to("jax")


def position(value: int, dtype: Any = plugrad.int64) -> Any:
    return plugrad.tensor(value, device="jax", dtype=dtype)


def test_a_tensor_indexes_as_the_number_does() -> None:
    def step(x: Any, i: Any) -> Any:
        return (
            *(x[i], x[:, i], x[..., i], x[i, i], x[1, i], x[None, i, 1:3], x[i, :, None]),
            *(x[i, [0, 1]], x[[0, 2], :, None][:, i], x[None, None][:, 0, i, [1, 0]]),
        )

    captured = plugrad_jax.jit(step)
    for value in POSITIONS:
        expected = step(table(), value)
        for index in (position(value), position(value, plugrad.int32)):
            found = captured(table(), index)
            assert [each.tolist() for each in found] == [each.tolist() for each in expected]
    assert captured.traces == 2


def test_assignments_by_a_tensor_are_those_by_the_number() -> None:
    def step(x: Any, i: Any) -> Any:
        x[i] = 5
        x[i, 1:3] += plugrad.tensor([1.0, 2.0], device="jax")
        x[:, i] *= 2
        x[i, [0, 1]] = plugrad.tensor([-1.0, -2.0], device="jax")
        x[1, i] = x[i, 1]
        x[i] += 1

    captured = plugrad_jax.jit(step)
    for value in POSITIONS:
        expected, x = table(), table()
        step(expected, value)
        captured(x, position(value))
        assert x.tolist() == expected.tolist()
    assert captured.traces == 1


def test_gradients_go_through_an_unknown_index() -> None:
    def step(x: Any, i: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x * 2
        y[i] = x[i] ** 2
        return plugrad.autograd.grad(y[:, i].sum(), x)[0]

    captured = plugrad_jax.jit(step)
    for value in POSITIONS:
        expected = step(table(), value)
        assert captured(table(), position(value)).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "write",
    [lambda x, i: x[i].add_(1), lambda x, i: x[:, i].view(-1).zero_()],
    ids=["x[i]", "view"],
)
def test_a_write_that_would_be_lost_is_named(write: Any) -> None:
    def step(x: Any, i: Any) -> None:
        write(x, i)

    x = table()
    step(x, position(1))
    assert x.tolist() != table().tolist()
    before = x.tolist()
    with pytest.raises(plugrad_jax.CaptureError, match=r"test_jit_indices\.py:\d+: .*x\[i\] = "):
        plugrad_jax.jit(step)(x, position(1))
    assert x.tolist() == before


def test_errors_are_those_of_numbers() -> None:
    step = plugrad_jax.jit(lambda x, i: x[i, i, i])
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
        step(table(), position(0))
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        plugrad_jax.jit(lambda x, i: x[i])(table().sum(), position(0))
    with pytest.raises(IndexError, match="dimension 0 with size 0"):
        plugrad_jax.jit(lambda x, i: x[i])(table()[:0], position(0))


def test_outside_of_a_step_it_selects_a_view() -> None:
    x = table()
    x[position(1)].add_(1)
    assert x.tolist()[1] == [5.0, 6.0, 7.0, 8.0]
