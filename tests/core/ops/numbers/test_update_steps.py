"""Steps of optimizers in one call: bit for bit what operators on one tensor give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrad
from plugrad.ops.on_demand.composite import optimizers as by_operators
from plugrad.plugins.lists import runs_at_once
from tests.core.drawing import drawn

SHAPES = [(), (0,), (3,), (2, 3), (3, 1, 2), (200, 90)]
NUMBERS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


def _tensor(shape: tuple[int, ...], dtype: Any, transposed: bool, odd: bool) -> Any:
    made = plugrad.randn(shape[::-1] if transposed else shape, dtype=dtype)
    if odd and made.numel():
        made.view(-1)[0] = float("nan")
        made.view(-1)[-1] = float("inf")
    return made.permute(*range(made.ndim)[::-1]) if transposed else made


@st.composite
def lists(draw: Any, count: int) -> list[list[Any]]:
    plugrad.manual_seed(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from([plugrad.float32, plugrad.float64]))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    odd = draw(st.booleans())
    return [
        [_tensor(shape, dtype, draw(st.booleans()), odd) for shape in shapes] for _ in range(count)
    ]


def _check(
    function: Any, composition: Any, written: list[list[Any]], grads: Any, rest: Any
) -> None:
    alone = [[tensor.clone() for tensor in tensors] for tensors in written]
    versions = [[tensor._version for tensor in tensors] for tensors in written]
    function(written[0], grads, *written[1:], *rest[0], **rest[1])
    composition(alone[0], grads, *alone[1:], *rest[0], **rest[1])
    for ours, theirs, before in zip(written, alone, versions, strict=True):
        for a, b, version in zip(ours, theirs, before, strict=True):
            assert plugrad.allclose(a, b, rtol=0, atol=0, equal_nan=True), (a, b)
            assert a._version == version + 1


@drawn(100)
@given(
    lists(3), st.booleans(), NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.booleans(), st.booleans()
)
def test_sgd(
    tensors: list[list[Any]],
    has_momentum: bool,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    same_rate: bool,
) -> None:
    p, g, v = tensors
    options = {
        "lr": 1 if same_rate else 0.03,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov and has_momentum,
        "maximize": maximize,
    }
    assert runs_at_once("_update_sgd", tensors)
    written = [p, v] if has_momentum else [p]
    rest = ((), options) if has_momentum else (([],), options)
    _check(plugrad._update_sgd, by_operators.update_sgd, written, g, rest)


@drawn(100)
@given(lists(5), st.booleans(), NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.booleans())
def test_adam(
    tensors: list[list[Any]],
    amsgrad: bool,
    beta1: float,
    beta2: float,
    weight_decay: float,
    decays: bool,
    maximize: bool,
) -> None:
    p, g, mean, square, most = tensors
    square, most = [each.abs() for each in square], [each.abs() for each in most]
    numbers = [[0.01 * (1 + place) for place in range(len(p))], [1e-8] * len(p)]
    options = {
        "beta1": beta1,
        "beta2": beta2,
        "decay": 0.125 if decays else 0.0,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    written = [p, mean, square, most] if amsgrad else [p, mean, square]
    rest = (numbers if amsgrad else [[], *numbers], options)
    _check(plugrad._update_adam, by_operators.update_adam, written, g, rest)


@pytest.mark.parametrize(
    "change",
    [
        lambda p, g: (p, [g[0].double(), g[1]]),
        lambda p, g: (p, [g[0][:1], g[1]]),
        lambda p, g: ([p[0].half(), p[1].half()], [g[0].half(), g[1].half()]),
        lambda p, g: ([p[0].requires_grad_(), p[1]], g),
        lambda p, g: ([plugrad.ones(2, device="meta"), p[1]], g),
    ],
)
def test_what_is_not_alike_does_not_go_together(change: Any) -> None:
    p = [plugrad.ones(2), plugrad.ones(3)]
    assert runs_at_once("_update_sgd", [p, p])
    assert not runs_at_once("_update_sgd", change(p, p))
