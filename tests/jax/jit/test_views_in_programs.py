"""Views and writes inside of a captured step: one XLA program, with the results of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad_jax

WRITES: dict[str, Callable[[Any], Any]] = {
    "a row": lambda x: x[1].mul_(3),
    "every second column": lambda x: x[:, ::2].add_(x[:, 1::2]),
    "a part of the transpose": lambda x: x.t()[1:].square_(),
    "the diagonal": lambda x: x.diagonal().fill_(7),
    "the diagonal above": lambda x: x.diagonal(1).neg_(),
    "flat": lambda x: x.view(-1)[3:9].copy_(x.view(-1)[:6] * 2),
    "by strides": lambda x: x.as_strided((2, 2), (5, 1), 1).zero_(),
    "of the transpose by strides": lambda x: x.t().as_strided((3,), (4,), 2).mul_(-1),
    "windows": lambda x: x.unfold(1, 2, 2)[0].sub_(1),
    "items": lambda x: x.__setitem__((slice(1, 3), -1), x[0, :2]),
    "t_ and a row": lambda x: x.t_()[0].add_(5),
    "the right half": lambda x: x.narrow(1, 2, 2).add_(1),
    "chained": lambda x: x[1:].t()[:2].unsqueeze(0).mul_(2).add_(1),
}


def program(write: Callable[[Any], Any], x: Any, weights: Any) -> Any:
    leaf = x.detach().requires_grad_()
    base = leaf * 1
    other = base[0]
    write(base)
    loss = (base * weights.view(base.shape)).sum() + other.sum()
    (grad,) = plugrad.autograd.grad(loss, leaf)
    return base.detach(), other.detach(), grad


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_captured_step_gives_what_memory_gives(write: Callable[[Any], Any]) -> None:
    step = plugrad_jax.jit(lambda x, weights: program(write, x, weights))
    found, expected = [], []
    for start in (1.0, 2.0):
        for device, run in (("jax", step), ("cpu", lambda x, w: program(write, x, w))):
            x = plugrad.arange(start, start + 16, device=device).view(4, 4)
            weights = plugrad.arange(16.0, device=device)
            results = [result.tolist() for result in run(x, weights)]
            (found if device == "jax" else expected).append(results)
    assert found == expected


def test_a_write_to_what_was_there_before_reaches_its_views() -> None:
    def fill(x: Any, column: Any) -> None:
        x[0].add_(1)
        x.t()[1].mul_(10)

    step = plugrad_jax.jit(fill)
    x = plugrad.ones(2, 2, device="jax")
    column = x[:, 1]
    for _ in range(2):
        step(x, column)
    assert x.tolist() == [[3.0, 210.0], [1.0, 100.0]]
    assert column.tolist() == [210.0, 100.0]
