"""Steps of optimizers: bit for bit the same as plugrad-cpu's."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrad
from plugrad_cpu.kernels.lists import optimizers
from tests.native.conftest import NAMES

SHAPES = [(), (0,), (1,), (7,), (17, 5), (2, 3, 4), (150, 120)]
SHARES = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0])
Lists = list[list[Any]]

on_each_module = pytest.mark.parametrize(
    "kernels", [import_module(f"plugrad_native.{name}") for name in NAMES]
)


@st.composite
def lists(draw: Any) -> Lists:
    """Parameters, gradients, and three lists of states; the last two are positive."""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    odd = draw(st.sampled_from([None, np.nan, np.inf, -np.inf]))

    def made() -> list[Any]:
        arrays = [np.array(generator.standard_normal(shape), dtype) for shape in shapes]
        for array in arrays:
            if odd is not None and array.size:
                array.reshape(-1)[0] = odd
        return arrays

    return [
        made(),
        made(),
        made(),
        *[[np.abs(array, out=array) for array in made()] for _ in range(2)],
    ]


def copied(tensors: Lists) -> Lists:
    return [[array.copy() for array in arrays] for arrays in tensors]


def assert_same(found: Lists, wanted: Lists) -> None:
    for a, b in zip(chain(*found), chain(*wanted), strict=True):
        np.testing.assert_array_equal(a, b)


@on_each_module
@given(lists(), st.booleans(), SHARES, SHARES, SHARES, st.booleans(), st.booleans())
def test_sgd(
    kernels: Any,
    given: Lists,
    has_momentum: bool,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    numbers = (0.03, momentum, dampening, weight_decay, nesterov, maximize)
    ours, theirs = copied(given), copied(given)
    with np.errstate(all="ignore"):
        for kernel, (p, g, v, *_) in (
            (kernels.update_sgd, ours),
            (optimizers.update_sgd, theirs),
        ):
            assert kernel(p, g, v if has_momentum else [], *numbers) is None
    assert_same(ours, theirs)


@on_each_module
@given(lists(), st.booleans(), SHARES, SHARES, SHARES, SHARES, st.booleans())
def test_adam(
    kernels: Any,
    given: Lists,
    amsgrad: bool,
    beta1: float,
    beta2: float,
    decay: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    rates = [0.01 * (1 + place) for place in range(len(given[0]))]
    numbers = (rates, [1e-8] * len(rates), beta1, beta2, decay, weight_decay, maximize)
    ours, theirs = copied(given), copied(given)
    with np.errstate(all="ignore"):
        for kernel, (p, g, mean, square, most) in (
            (kernels.update_adam, ours),
            (optimizers.update_adam, theirs),
        ):
            assert kernel(p, g, mean, square, most if amsgrad else [], *numbers) is None
    assert_same(ours, theirs)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "change",
    [
        lambda p, g: ([p[0], p[1].T], g),
        lambda p, g: (p, [g[0], g[1].astype(np.float64)]),
        lambda p, g: (p, [g[0], g[1][:1]]),
        lambda p, g: (p, g[:1]),
        lambda p, g: ([p[0], _read_only(p[1])], g),
        lambda p, g: ([p[0].astype(np.float16), p[1]], g),
        lambda p, g: (tuple(p), g),
        lambda p, g: ([], []),
    ],
)
def test_what_is_not_served_is_declined_and_left_alone(kernels: Any, change: Any) -> None:
    p, g = [np.ones((2, 3), np.float32) for _ in range(2)], [np.ones((2, 3), np.float32)] * 2
    p, g = change(p, g)
    sgd = kernels.update_sgd
    assert sgd(p, g, [], 0.1, 0.0, 0.0, 0.0, False, False) is NotImplemented
    assert all((array == 1).all() for array in p)
    adam = kernels.update_adam
    states: Any = [np.zeros((2, 3), np.float32) for _ in p]
    numbers = ([0.1] * len(p), [1e-8] * len(p), 0.9, 0.999, 0.0, 0.0, False)
    assert adam(p, g, states, [*states], [], *numbers) is NotImplemented
    assert all((array == 1).all() for array in p)


@pytest.mark.parametrize("numbers", [("0.1",), (None,), ([0.1], "x")])
def test_numbers_that_are_none_are_declined(kernels: Any, numbers: Any) -> None:
    p = [np.ones(2, np.float32)]
    sgd = kernels.update_sgd
    assert sgd(p, p, [], numbers[0], 0.0, 0.0, 0.0, False, False) is NotImplemented
    adam = kernels.update_adam
    states = [np.zeros(2, np.float32)], [np.zeros(2, np.float32)]
    assert adam(p, p, *states, [], *numbers[:2], *[0.1] * 5) is NotImplemented


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("size", [3, 70])
@pytest.mark.parametrize("join", ["stack", "cat", "hstack", "column_stack", "block_diag", "einsum"])
def test_lists_are_those_of_the_run(join: str, size: int) -> None:
    """A compiled step that remembered the arrays of its first run would give its results again."""

    def step(x: Any) -> Any:
        parts = [x * 2, x + 1, x.t(), x]
        if join == "einsum":
            return plugrad.einsum("ij,jk->ik", *parts[:2])
        if join == "block_diag":
            return plugrad.block_diag(*parts)
        return getattr(plugrad, join)(parts)

    compiled = plugrad.compile(step)
    for _ in range(4):
        x = plugrad.randn(size, size)
        assert compiled(x).equal(step(x))


@pytest.mark.usefixtures("native")
def test_gradients_of_parts_are_put_together_anew() -> None:
    weight = plugrad.randn(64, 192, requires_grad=True)

    def step(x: Any) -> Any:
        q, k, v = (x @ weight).reshape(4, 64, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        y = (q * k + v).transpose(1, 2).reshape(4, 64, 64)
        return plugrad.autograd.grad(y.square().mean(), [weight])[0]

    compiled = plugrad.compile(step)
    for _ in range(4):
        x = plugrad.randn(4, 64, 64)
        assert compiled(x).equal(step(x))
