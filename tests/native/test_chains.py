"""Chains of functions of elements beside the functions one by one: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
import plugrad.optim
from plugrad.testing import assert_close

chains = pytest.importorskip("plugrad_native.chains")
pytest.importorskip("plugrad_native.compiled")

ONE = ("neg", "abs", "relu", "exp", "sigmoid", "tanh", "erf", "silu", "sqrt", "reciprocal", "rsqrt")
TWO = ("add", "sub", "mul", "div", "maximum", "minimum")
SLOPES = ("tanh_backward", "sigmoid_backward", "silu_backward")
SIZES = [(1,), (3, 5), (1024,), (1025,), (7, 1000), (300000,)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_each_link(kernels: Any, draw: Any, size: Any) -> None:
    a, b = draw(*size), draw(*size)
    with np.errstate(all="ignore"):
        for name in ONE:
            links = ((name, (("input", 0),), 0), ("mul", (("register", 0), ("input", 1)), 0))
            chain = kernels.make_chain(2, links)
            expected = kernels.mul(getattr(kernels, name)(a), b)
            np.testing.assert_array_equal(kernels.run_chain(chain, a, b), expected)
        for name in (*TWO, *SLOPES):
            links = ((name, (("input", 0), ("input", 1)), 3), ("neg", (("register", 3),), 0))
            chain = kernels.make_chain(2, links)
            expected = -getattr(kernels, name)(a, b)
            np.testing.assert_array_equal(kernels.run_chain(chain, a, b), expected)


def test_numbers(kernels: Any, draw: Any) -> None:
    a = draw(5000)
    for name in TWO:
        kernel = getattr(kernels, name)
        for number in (2, -0.5, float("nan"), float("inf")):
            chain = kernels.make_chain(1, ((name, (("input", 0), number), 0),))
            np.testing.assert_array_equal(kernels.run_chain(chain, a), kernel(a, number))
            chain = kernels.make_chain(1, ((name, (number, ("input", 0)), 0),))
            np.testing.assert_array_equal(kernels.run_chain(chain, a), kernel(number, a))
        chain = kernels.make_chain(2, ((name, (("input", 0), ("input", 1)), 0),))
        for given in ((a, 0.3), (0.3, a)):
            np.testing.assert_array_equal(kernels.run_chain(chain, *given), kernel(*given))


def test_out(kernels: Any, draw: Any) -> None:
    a, out = draw(3, 700), np.empty((3, 700), draw(1).dtype)
    chain = kernels.make_chain(1, (("exp", (("input", 0),), 0),))
    assert kernels.run_chain(chain, a, out=out) is out
    np.testing.assert_array_equal(out, kernels.exp(a))
    before = a.copy()
    for wrong in (a, a[:1], out.T, out.astype(np.float16)):
        assert kernels.run_chain(chain, a, out=wrong) is NotImplemented
    out.flags.writeable = False
    assert kernels.run_chain(chain, a, out=out) is NotImplemented
    np.testing.assert_array_equal(a, before)


def test_what_is_no_chain_is_declined(kernels: Any, draw: Any) -> None:
    good = ("exp", (("input", 0),), 0)
    for inputs, links in (
        (0, (good,)),
        (17, (good,)),
        (1, ()),
        (1, (good,) * 17),
        (1, (("none such", (("input", 0),), 0),)),
        (1, (("exp", (("input", 1),), 0),)),
        (1, (("exp", (("input", -1),), 0),)),
        (1, (("exp", (("register", 8),), 0),)),
        (1, (("exp", (("input", 0),), 8),)),
        (1, (("exp", (2.0,), 0),)),
        (1, (("add", (2.0, 3.0), 0),)),
        (1, (("add", (("input", 0), None), 0),)),
        (1, (("add", (("input", 0),), 0),)),
        (1, (("tanh_backward", (("input", 0), 2.0), 0),)),
        (1, ("exp",)),
        (1, [good]),
        ("1", (good,)),
    ):
        assert kernels.make_chain(inputs, links) is NotImplemented
    chain = kernels.make_chain(2, (("add", (("input", 0), ("input", 1)), 0),))
    a = draw(4, 3)
    for given in (
        (a,),
        (a, a, a),
        (a, a[:2]),
        (a, a.T),
        (a, a.astype(np.int32)),
        (a, 1),
        (1.0, 2.0),
        (a, None),
    ):
        assert kernels.run_chain(chain, *given) is NotImplemented
    assert kernels.run_chain(object(), a, a) is NotImplemented


def compiled_and_eager(function: Any, *args: Any) -> Any:
    step: Any = plugrad.compile(function)
    found = [step(*args) for _ in range(3)]
    assert step.cache_info().hits, step.explain()
    for one in found:
        for a, b in zip(one, function(*args), strict=True):
            assert_close(a, b, rtol=0, atol=0)
    ((program,),) = step._programs.values()
    return program.lowered


@pytest.mark.usefixtures("native")
def test_compiled_steps_join_what_users_write() -> None:
    plugrad.manual_seed(0)
    x, y = plugrad.randn(30, 40), plugrad.randn(30, 40)
    tape = compiled_and_eager(lambda x: (x * (1 + x.exp()).log().tanh(),), x)
    assert (tape.direct, tape.joined) == (1, 5)
    tape = compiled_and_eager(lambda x, y: (((x * y + x) * 0.5).tanh() * y - x**2,), x, y)
    assert (tape.direct, tape.wrapped, tape.joined) == (1, 0, 7)
    tape = compiled_and_eager(lambda x: (F.gelu(x) + F.gelu(x, approximate="tanh") * 2,), x)
    assert (tape.direct, tape.joined) == (1, 4)


@pytest.mark.usefixtures("native")
def test_gradients_are_joined() -> None:
    x = plugrad.randn(50, requires_grad=True)

    def step(x: Any) -> Any:
        out = plugrad.sigmoid(1.702 * x).tanh() * x
        return (plugrad.autograd.grad(out.sum(), x)[0],)

    assert compiled_and_eager(step, x).joined > 2


@pytest.mark.usefixtures("native")
def test_long_chains_are_joined_in_parts() -> None:
    def step(x: Any) -> Any:
        for _ in range(20):
            x = (x * 0.5).tanh()
        return (x,)

    tape = compiled_and_eager(step, plugrad.randn(100))
    assert tape.joined > 30
    assert tape.direct <= 4


@pytest.mark.usefixtures("native")
def test_steps_of_optimizers_with_other_rates() -> None:
    x, weight = plugrad.randn(200), plugrad.zeros(200, requires_grad=True)
    twin = plugrad.zeros(200, requires_grad=True)

    def stepping(weight: Any, optimizer: Any) -> Any:
        def step(x: Any) -> None:
            optimizer.zero_grad()
            (weight.tanh() * x).sum().backward()
            optimizer.step()

        return step

    optimizers = [plugrad.optim.RMSprop([each], foreach=False) for each in (weight, twin)]
    step: Any = plugrad.compile(stepping(weight, optimizers[0]))
    eager = stepping(twin, optimizers[1])
    for lr in (0.01, 0.01, 0.01, 0.005, 0.0025):
        for each in optimizers:
            each.param_groups[0]["lr"] = lr
        step(x)
        eager(x)
        assert weight.equal(twin)
    assert step.cache_info().hits >= 2, step.explain()
    assert max(program.lowered.joined for (program,) in step._programs.values()) > 0
