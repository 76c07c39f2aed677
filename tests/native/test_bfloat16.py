"""bfloat16: casts bit for bit as ml_dtypes makes them, and kernels beside plugrad-cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.testing import assert_close

variants = pytest.importorskip("plugrad_native.variants")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
NARROW = {one.operator: one.kernel for one in variants.VARIANTS if one.name == "native-bfloat16"}
SIZES = [1, 1000, 70_001]
OF_TWO = [
    *("gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward"),
    *("threshold_backward", "maximum", "minimum"),
    *(f"{operator}.Tensor" for operator in variants._OF_PAIRS),
]
OF_ONE = (*variants._OF_ELEMENTS[:-2], "gelu")
# Positive numbers, for roots and the like.
POSITIVE = ("rsqrt", "sqrt", "reciprocal")


def drawn(shape: int | tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(BFLOAT16)


def same(found: Any, expected: Any, places: int = 1) -> None:
    """Equal, or beside each other: kernels of float32 round at the last place."""
    assert (type(found), found.dtype, found.shape) == (np.ndarray, expected.dtype, expected.shape)
    assert found.flags.c_contiguous
    if found.dtype != BFLOAT16:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        return
    near = 2.0**-7 * places
    np.testing.assert_allclose(found.astype(FLOAT32), expected.astype(FLOAT32), near, 1e-37)


def test_casts_of_all_numbers(kernels: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16)
    wide = kernels.cast(every, FLOAT32)
    np.testing.assert_array_equal(wide.view(np.uint32), np.arange(1 << 16, dtype=np.uint32) << 16)
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, np.uint32)
    halves = (np.arange(1 << 16, dtype=np.uint32) << 16) + 0x8000  # as near to two
    for given in (bits, halves, halves - 1, halves + 1):
        numbers = given.view(np.float32)
        with np.errstate(all="ignore"):
            expected = numbers.astype(BFLOAT16)
        found = kernels.cast(numbers, BFLOAT16)
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


def test_other_casts_are_declined(kernels: Any) -> None:
    x = drawn((40, 60))
    for given, dtype in (
        (x.T, FLOAT32),
        (x, BFLOAT16),
        (x, np.dtype(np.float64)),
        (x.astype(np.float64), BFLOAT16),
        (x.astype(FLOAT32), np.dtype(np.float16)),
        (x.astype(FLOAT32), np.dtype(ml_dtypes.float8_e5m2)),
        (x.view(np.uint16), FLOAT32),
        (x.astype(ml_dtypes.float8_e4m3fn), FLOAT32),
    ):
        assert kernels.cast(given, dtype) is NotImplemented


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operator", OF_ONE)
def test_functions(plain: Any, operator: str, size: int) -> None:
    x = np.abs(drawn(size)) + BFLOAT16.type(0.1) if operator in POSITIVE else drawn(size)
    x[: min(3, size)] = [np.inf, np.nan, 0.0][: min(3, size)]
    rest = ("none",) if operator == "gelu" else ()
    with np.errstate(all="ignore"):
        same(NARROW[operator](x, *rest), plain[operator](x, *rest))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operator", OF_TWO)
def test_functions_of_two(plain: Any, operator: str, size: int) -> None:
    a, b = drawn(size), drawn(size, 1)
    rest = {"gelu_backward": ("tanh",), "threshold_backward": (0.25,)}.get(operator, ())
    with np.errstate(all="ignore"):
        expected = plain[operator.partition(".")[0]](a, b, *rest)
        same(NARROW[operator](a, b, *rest), expected)


@pytest.mark.parametrize("operator", variants._INTO_FIRST)
def test_in_place(plain: Any, operator: str) -> None:
    a, b = drawn(SIZES[-1]), drawn(SIZES[-1], 1)
    expected = plain[operator[:-1]](a, b)
    assert NARROW[f"{operator}.Tensor"](a, b) is a
    same(a, expected)


@pytest.mark.parametrize("shape", [(40, 65), (3, 700, 11), (1, 1)])
@pytest.mark.parametrize("operator", ["_softmax", "_log_softmax"])
def test_softmax(plain: Any, operator: str, shape: tuple[int, ...]) -> None:
    x = drawn(shape)
    found, expected = NARROW[operator](x, -1, False), plain[operator](x, -1, False)
    same(found, expected)
    assert NARROW[operator](x, -1, True) is NotImplemented  # gives float32
    grad = drawn(shape, 1)
    backward = f"{operator}_backward_data"
    args = (grad, expected, -1, BFLOAT16)
    made, plainly = NARROW[backward](*args), plain[backward](*args)
    np.testing.assert_allclose(made.astype(FLOAT32), plainly.astype(FLOAT32), 2e-2, 2e-2)
    assert NARROW[backward](grad, expected, -1, FLOAT32) is NotImplemented


@pytest.mark.parametrize("operator", ["sum", "mean"])
@pytest.mark.parametrize("dims", [(0, 1), (1,), (0,)])
def test_sums(plain: Any, operator: str, dims: tuple[int, ...]) -> None:
    x = drawn((300, 512))
    found = NARROW[operator](x, dims, False, BFLOAT16)
    if found is not NotImplemented:
        same(found, np.asarray(plain[operator](x, dims, False, BFLOAT16)), 2)
    assert NARROW[operator](x, dims, False, FLOAT32) is NotImplemented


@pytest.mark.parametrize("with_weight", [False, True])
def test_norms(plain: Any, with_weight: bool) -> None:
    x = drawn((70, 96))
    weight = drawn(96, 1) if with_weight else None
    for operator, rest in (("native_layer_norm", (weight, weight)), ("_fused_rms_norm", (weight,))):
        args = (x, (96,), *rest, 1e-5)
        for found, expected in zip(NARROW[operator](*args), plain[operator](*args), strict=True):
            same(found, expected)


def test_arrays_that_do_not_match_are_declined() -> None:
    x = drawn((40, 60))
    add = NARROW["add.Tensor"]
    others = (x[:1], x.T, x[:, ::2], x.astype(FLOAT32), 1.5, np.empty((0, 60), BFLOAT16))
    for other in others:
        assert add(x, other) is NotImplemented
    assert add(x[:, ::2], x[:, ::2]) is NotImplemented
    for out in (np.empty((60, 40), BFLOAT16).T, np.empty((40, 60), FLOAT32), x.reshape(-1)):
        assert add(x, x, out=out) is NotImplemented
        assert NARROW["exp"](x, out=out) is NotImplemented
    memory = drawn(3000)
    assert add(memory[:2000], memory[:2000], out=memory[500:2500]) is NotImplemented
    truths = memory.view(np.bool_)[:3000]
    assert NARROW["eq.Tensor"](memory, memory, out=truths) is NotImplemented


def test_results_may_go_to_an_array() -> None:
    x, y = drawn((40, 60)), drawn((40, 60), 1)
    out, truths = np.empty_like(x), np.empty((40, 60), np.bool_)
    assert NARROW["mul.Tensor"](x, y, out=out) is out
    same(out, x * y)
    assert NARROW["lt.Tensor"](x, y, out=truths) is truths
    np.testing.assert_array_equal(truths, x < y)
    assert NARROW["relu"](x, out=out) is out
    same(out, np.maximum(x, BFLOAT16.type(0)))


def test_threads_give_the_same(kernels: Any) -> None:
    x, y = drawn(1 << 20), drawn(1 << 20, 1)
    calls: list[Callable[[], Any]] = [
        lambda: kernels.mul(x, y),
        lambda: kernels.exp(x),
        lambda: kernels.cast(x, FLOAT32),
    ]
    expected = [call() for call in calls]
    kernels.use_thread_count(lambda: 3)
    try:
        for call, one in zip(calls, expected, strict=True):
            np.testing.assert_array_equal(call(), one)
    finally:
        kernels.use_thread_count(None)


def step(x: Any, weight: Any) -> tuple[Any, ...]:
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        hidden = F.gelu(F.linear(x, weight))
        hidden = F.layer_norm(hidden + hidden.relu(), (hidden.shape[-1],)).bfloat16()
        loss = (hidden * hidden.softmax(-1)).mean()
    loss.backward()
    return loss.detach(), x.grad, weight.grad


def test_a_step_under_autocast_uses_them_and_gives_the_same(request: Any) -> None:
    generator = np.random.default_rng(3)
    x = plugrad.tensor(generator.standard_normal((64, 48), np.float32))
    weight = plugrad.tensor(generator.standard_normal((80, 48), np.float32))
    expected = step(x, weight)
    request.getfixturevalue("native")
    with plugrad.record_dispatch_trace() as events:
        found = step(x, weight)
    ran = {event.op.removeprefix("plugrad::") for event in events if event.kind == "variant"}
    assert {"_to_copy", "gelu", "gelu_backward", "relu", "mul.Tensor"} <= ran
    for one, other in zip(found, expected, strict=True):
        assert one.dtype is other.dtype
        assert_close(one.float(), other.float(), rtol=3e-2, atol=3e-2)
