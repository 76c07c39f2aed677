"""Elementwise operators: the shared suite, and what happens at corners."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite

NAN = math.nan
INF = math.inf


class TestPointwise(OpSuite):
    cases = family_cases("pointwise")


def gradients(function: Any, *values: Any) -> list[list[float]]:
    leaves = [plugrad.tensor(v, dtype=plugrad.float64, requires_grad=True) for v in values]
    function(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


# The expected values are PyTorch 2.13's.
@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (plugrad.abs, [[0.0, -0.0]], [[0.0, 0.0]]),
        (plugrad.sqrt, [[0.0]], [[INF]]),
        (plugrad.log, [[0.0]], [[INF]]),
        (plugrad.sigmoid, [[-1000.0, 1000.0]], [[0.0, 0.0]]),
        (plugrad.nan_to_num, [[NAN, INF, 1.0]], [[0.0, 0.0, 1.0]]),
        (plugrad.atan2, [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, -1.0]]),
        (plugrad.hypot, [[0.0, 1.0], [0.0, 0.0]], [[NAN, 1.0], [NAN, 0.0]]),
        (
            lambda x: plugrad.clamp(x, 1, 3),
            [[1.0, 3.0, 2.0, 0.0, 4.0, NAN]],
            [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]],
        ),
        (lambda x: plugrad.clamp(x, 3, 1), [[1.0, 3.0, 2.0, 0.0, 4.0]], [[0.0] * 5]),
        (
            lambda x, low, high: plugrad.clamp(x, low, high),
            [
                [1.0, 2.0, 3.0, 2.0, 2.5, 0.0, 5.0],
                [1.0, 1.0, 1.0, 3.0, 2.0, 3.0, 3.0],
                [3.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0],
            ],
            [
                [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
                [0.0] * 7,
                [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
            ],
        ),
        (
            plugrad.pow,
            [[0.0, 0.0, 0.0, 2.0, -1.0, 0.0], [0.0, 1.0, 2.0, 0.0, 2.0, -1.0]],
            [[0.0, 1.0, 0.0, 0.0, -2.0, -INF], [0.0, 0.0, 0.0, math.log(2), NAN, -INF]],
        ),
        (lambda x: x**0, [[0.0, 1.0]], [[0.0, 0.0]]),
        (lambda x: x**1, [[0.0, 1.0]], [[1.0, 1.0]]),
        (lambda x: x**0.5, [[0.0, 1.0]], [[INF, 0.5]]),
        (lambda x: plugrad.pow(0, x), [[0.0, 1.0, -1.0]], [[0.0, 0.0, -INF]]),
        (
            plugrad.maximum,
            [[1.0, 2.0, 0.0, NAN], [1.0, 1.0, 1.0, 1.0]],
            [[0.5, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 1.0]],
        ),
        (
            plugrad.fmax,
            [[1.0, 2.0, 0.0, NAN, 1.0], [1.0, 1.0, 1.0, 1.0, NAN]],
            [[1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0]],
        ),
        (
            plugrad.fmin,
            [[1.0, 2.0, 0.0, NAN, 1.0], [1.0, 1.0, 1.0, 1.0, NAN]],
            [[1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0]],
        ),
        (plugrad.remainder, [[5.0, -5.0], [3.0, 3.0]], [[1.0, 1.0], [-1.0, 2.0]]),
        # PyTorch has no gradient for a number on the left: minus the quotient, rounded down.
        (lambda x: 7 % x, [[2.0, 3.0]], [[-3.0, -2.0]]),
        (plugrad.fmod, [[5.0, -5.0], [3.0, 3.0]], [[1.0, 1.0], [-1.0, 1.0]]),
        (
            lambda x, y: plugrad.div(x, y, rounding_mode="floor"),
            [[1.0, -1.0], [3.0, 4.0]],
            [[0.0, 0.0], [0.0, 0.0]],
        ),
    ],
)
def test_gradient_at_corner(function: Any, values: Any, expected: Any) -> None:
    for found, wanted in zip(gradients(function, *values), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plugrad.sign, [0.0, 1.0, -1.0]),
        (lambda x: plugrad.clamp(x, 0, 1), [NAN, 1.0, 0.0]),
        (lambda x: plugrad.maximum(x, plugrad.zeros(3)), [NAN, INF, 0.0]),
        (lambda x: plugrad.fmax(x, plugrad.zeros(3)), [0.0, INF, 0.0]),
        (lambda x: x // 2, [NAN, NAN, NAN]),
        (lambda x: x % 2, [NAN, NAN, NAN]),
        (plugrad.sigmoid, [NAN, 1.0, 0.0]),
    ],
)
def test_value_at_nan_and_infinity(function: Any, expected: list[float]) -> None:
    x = plugrad.tensor([NAN, INF, -INF], dtype=plugrad.float64)
    np.testing.assert_allclose(function(x).tolist(), expected)


def test_integers_to_negative_powers_truncate() -> None:
    base = plugrad.tensor([0, 1, -1, 2])
    assert plugrad.pow(base, plugrad.tensor([-1, -2, -3, -1])).tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize(
    "divide", [lambda x: x // 0, lambda x: x % 0, lambda x: plugrad.fmod(x, 0)]
)
def test_integer_division_by_zero_raises(divide: Any) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(plugrad.tensor([1, 2]))


def test_numbers_out_of_range_wrap_around() -> None:
    x = plugrad.tensor([3, 250], dtype=plugrad.uint8)
    assert (x + 300).tolist() == [47, 38]
    assert (x * -1).tolist() == [253, 6]


def test_bfloat16_and_numbers_stay_bfloat16() -> None:
    x = plugrad.ones(2, dtype=plugrad.bfloat16)
    for y in (x * 2.5, 2.5 - x, x / 3.0, x**1.5, plugrad.where(x > 0, x, 0.5)):
        assert y.dtype is plugrad.bfloat16
        assert y.numpy().dtype.name == "bfloat16"


def test_derivative_of_floor_divide_is_not_implemented() -> None:
    x = plugrad.tensor([3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"derivative for .*floor_divide is not implemented"):
        (x // 2).sum().backward()


def test_bool_negation_raises() -> None:
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
        -plugrad.tensor([True])
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor"):
        1 - plugrad.tensor([True])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: x.add_(1.5), "result type Float can't be cast to the desired output type Long"),
        (lambda x: x.div_(2), "result type Float can't be cast to the desired output type Long"),
        (
            lambda x: x.mul_(plugrad.ones(3, 2, dtype=plugrad.int64)),
            r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]",
        ),
    ],
)
def test_in_place_result_must_fit(write: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        write(plugrad.tensor([1, 2]))


def test_no_numpy_warning_leaks(recwarn: pytest.WarningsRecorder) -> None:
    x = plugrad.tensor([0.0, -1.0, 1e30, INF, NAN])
    for function in (plugrad.log, plugrad.sqrt, plugrad.exp, plugrad.reciprocal, plugrad.sin):
        function(x)
    x / plugrad.zeros(5)
    x**3
    x % 0
    assert not recwarn.list


def test_threads_may_compute_at_the_same_time(recwarn: pytest.WarningsRecorder) -> None:
    x = plugrad.full((200_000,), -1.0)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                assert plugrad.sqrt(x).isnan().all().item()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not recwarn.list


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "complex128"])
@pytest.mark.parametrize("left", ["array", 0.0, 1.5])
@pytest.mark.parametrize("transposed", [False, True])
def test_where_on_large_arrays(dtype: str, left: Any, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((300, 300)) > 0.5
    a, b = (rng.integers(-5, 5, (300, 300)).astype(dtype) for _ in range(2))
    if transposed:
        a, b = a.T, b.T
    if "int" in dtype and left == 1.5:
        left = 3
    args = [mask, a if left == "array" else left, b]
    given = [plugrad.from_numpy(x) if isinstance(x, np.ndarray) else x for x in args]
    np.testing.assert_array_equal(plugrad.where(*given).numpy(), np.where(*args))
    given[1], given[2] = given[2], given[1]
    np.testing.assert_array_equal(plugrad.where(*given).numpy(), np.where(mask, *args[:0:-1]))


def test_where_keeps_the_sign_of_zero() -> None:
    mask = plugrad.zeros(40_000, dtype=plugrad.bool)
    result = plugrad.where(mask, plugrad.ones(40_000), -0.0)
    assert np.signbit(result.numpy()).all()


def test_a_numpy_error_state_of_the_caller_is_not_disturbed() -> None:
    with np.errstate(divide="raise"):
        plugrad.log(plugrad.zeros(1))
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("MulBackward0", lambda x: x * 2),
        ("AddBackward0", lambda x: 1 + x),
        ("RsubBackward1", lambda x: 1 - x),
        ("PowBackward0", lambda x: x**2),
        ("PowBackward1", lambda x: x**x),
        ("PowBackward2", lambda x: 2**x),
        ("ClampBackward1", lambda x: x.clamp(0, 1)),
        ("WhereBackward0", lambda x: plugrad.where(x > 0, x, 0.0)),
    ],
)
def test_node_has_the_name_pytorch_gives_it(name: str, values: Any) -> None:
    result = values(plugrad.tensor([1.0], requires_grad=True))
    assert result.grad_fn.name() == name


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_nan_to_num_replaces_the_parts_of_complex_numbers(device: str) -> None:
    # As PyTorch 2.13 computes it; it has no gradient for them.
    if device == "jax":
        pytest.importorskip("plugrad_jax")
    x = plugrad.tensor([complex(NAN, 3), complex(1, -INF), 2 + 1j], device=device).t()
    assert x.nan_to_num(0.5, 9, -9).tolist() == [0.5 + 3j, 1 - 9j, 2 + 1j]
    x.requires_grad_()
    x.nan_to_num().backward(plugrad.full((3,), 1 + 2j, device=device))
    assert x.grad.tolist() == [2j, 1, 1 + 2j]
    decomposed = plugrad.ops.composite.elementwise.rounding.nan_to_num(x.detach(), 0.5, 9, -9)
    assert decomposed.tolist() == [0.5 + 3j, 1 - 9j, 2 + 1j]
    kept = plugrad.ops.composite.elementwise.rounding.nan_to_num(
        x.detach(), NAN, INF, -INF
    ).tolist()
    assert str(kept) == str(x.detach().tolist())
