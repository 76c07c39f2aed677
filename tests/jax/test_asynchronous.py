"""Only operations that need the device's numbers wait for it; errors in values are raised at that
point."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
import plugrad_jax

SECONDS = 60.0
ROWS, COLUMNS = 8, 4


class Gate:
    """An array that is not computed until `open()` is called."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.big = jnp.ones((1000, 1000), np.float32)
        self.busy = jax.jit(lambda a: a @ a @ a @ a)
        self.held = jax.jit(
            lambda a: jax.pure_callback(
                self._wait, jax.ShapeDtypeStruct((ROWS, COLUMNS), np.float32), a
            )
        )

    def _wait(self, array: Any) -> Any:
        self.event.wait(SECONDS)
        return np.ones((ROWS, COLUMNS), np.float32)

    def array(self) -> Any:
        # XLA's CPU runs a callback on the calling thread if its input is there already.
        self.event.set()
        self.held(self.busy(self.big)).block_until_ready()
        self.event.clear()
        return self.held(self.busy(self.big))

    def open(self) -> None:
        self.event.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


def train(x: Any, weight: Any, target: Any) -> Any:
    """One step: forward, backward, update."""
    loss = F.cross_entropy(F.relu(x @ weight) + 1, target)
    loss.backward()
    with plugrad.no_grad():
        weight -= 0.1 * weight.grad
    return loss


def test_a_training_step_returns_before_its_input_is_there(gate: Gate) -> None:
    weight = plugrad.ones(COLUMNS, 3, device="jax:0", requires_grad=True)
    target = plugrad.zeros(ROWS, dtype=plugrad.int64, device="jax:0")
    train(plugrad.ones(ROWS, COLUMNS, device="jax:0"), weight, target)  # compiles
    weight.grad = None
    x = plugrad_jax.from_jax(gate.array())
    loss = train(x, weight, target)
    largest = weight.argmax()
    assert not plugrad_jax.to_jax(x).is_ready()
    assert not plugrad_jax.to_jax(loss.detach()).is_ready()
    assert not plugrad_jax.to_jax(largest).is_ready()
    gate.open()
    assert loss.item() > 0


def test_synchronize_waits(gate: Gate) -> None:
    x = plugrad_jax.from_jax(gate.array())
    y = x + 1
    assert not plugrad_jax.to_jax(y).is_ready()
    threading.Timer(0.05, gate.open).start()
    plugrad.dispatch.backends.active.find_backend("jax").backend.synchronize(0)
    assert plugrad_jax.to_jax(y).is_ready()


def test_an_error_in_values_comes_with_the_first_number_that_is_read() -> None:
    x = plugrad.ones(3, dtype=plugrad.int64, device="jax")
    quotient = x // plugrad.tensor([1, 0, 1], device="jax")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        quotient.tolist()
    assert x.tolist() == [1, 1, 1]  # it is raised once


def test_an_error_in_values_comes_with_synchronize() -> None:
    F.nll_loss(plugrad.ones(2, 3, device="jax"), plugrad.tensor([0, 7], device="jax"))
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds\."):
        plugrad.dispatch.backends.active.find_backend("jax").backend.synchronize(0)


def _singular() -> Any:
    return plugrad.ones(2, 2, device="jax")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a: plugrad.linalg.solve(a, a), "the input matrix is singular"),
        (plugrad.linalg.inv, "diagonal element 2 is zero"),
        (plugrad.linalg.cholesky, "not positive-definite"),
        (lambda a: plugrad.linalg.svdvals(a / 0), "contained non-finite values"),
    ],
)
def test_a_singular_matrix_is_an_error_at_once(function: Any, words: str) -> None:
    with pytest.raises(plugrad.linalg.LinAlgError, match=words):
        function(_singular())
    compiled = plugrad_jax.jit(function)(_singular())
    assert not bool(compiled.isfinite().all())


def test_the_determinant_of_a_singular_matrix_has_its_gradient() -> None:
    a = _singular().requires_grad_()
    plugrad.linalg.det(a).backward()
    assert a.grad.tolist() == [[1.0, -1.0], [-1.0, 1.0]]


def test_numbers_are_checked_at_once() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        plugrad.ones(3, dtype=plugrad.int64, device="jax") // 0
