"""Operators, indices and classes of the arrays that the namespace makes."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import plugrad
from plugrad import array_api as xp
from tests.core.array_api.against_strict import INTEGER, REAL, on_numpy, pairs

ARITHMETIC = ("add", "sub", "mul")
NAMES = {"add": "add", "sub": "subtract", "mul": "multiply"}
INFINITE = [(1.0, -np.inf), (-1.0, np.inf), (np.inf, 2.0), (-np.inf, 2.0), (0.0, -2.0)]


@pytest.mark.parametrize(("a", "b"), [p for p in pairs() if p[0] in INTEGER + REAL and p[0] < p[1]])
def test_operators_promote_by_the_standard(a: str, b: str) -> None:
    expected = strict.result_type(getattr(strict, a), getattr(strict, b))
    for shape, other in (((), (2,)), ((2,), ()), ((2,), (2,))):
        x, y = xp.ones(shape, dtype=getattr(xp, a)), xp.ones(other, dtype=getattr(xp, b))
        for found in (x + y, y - x, x * y, x**y):
            assert found.dtype.name == str(expected).rpartition(".")[2]
            assert type(found) is xp.Array
        assert (x == y).dtype is xp.bool


def test_numbers_without_dimensions_are_compared_as_they_are() -> None:
    wide, narrow = xp.asarray(300, dtype=xp.int16), xp.asarray([44], dtype=xp.int8)
    assert not bool(wide == narrow)
    assert bool(wide > narrow)


@pytest.mark.parametrize(("a", "b"), INFINITE)
def test_quotients_of_infinities_and_signs_of_zeros(a: float, b: float) -> None:
    x, y = xp.asarray([a]), xp.asarray([b])
    for op, function in ((operator.floordiv, xp.floor_divide), (operator.mod, xp.remainder)):
        expected = str(function(x, y).tolist())
        assert str(op(x, y).tolist()) == expected
        changed = xp.asarray(x, copy=True)
        changed = (operator.ifloordiv if op is operator.floordiv else operator.imod)(changed, y)
        assert str(changed.tolist()) == expected


def test_writing_operators_keep_the_array_and_take_narrower_unsigned_integers() -> None:
    x = xp.ones(2, dtype=xp.int32)
    before = x
    x += xp.asarray([1, 2], dtype=xp.uint16)
    x <<= xp.asarray(1, dtype=xp.uint8)
    assert x is before
    assert x.tolist() == [4, 6]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_a_plain_tensor_brings_the_rules_of_pytorch(name: str) -> None:
    plain, array = plugrad.ones(2, dtype=plugrad.int8), xp.asarray(3)
    op = getattr(operator, name)
    for found in (op(plain, array), op(array, plain)):
        assert type(found) is plugrad.Tensor
        assert found.dtype is plugrad.int8
    assert type(getattr(xp, NAMES[name])(plain, array)) is plugrad.Tensor
    assert op(plain, array).tolist() == op(plain, plugrad.tensor(3)).tolist()
    assert op(array, plain).tolist() == op(plugrad.tensor(3), plain).tolist()


def test_which_results_are_arrays() -> None:
    x, plain = xp.ones((2, 2)), plugrad.eye(2)
    arrays = [
        *(x[0], x.T, x.mT, -x, abs(x), 3 - x, x @ x, x.to_device("cpu"), xp.asarray([[1.0]])),
        *(xp.linalg.inv(xp.eye(2)), xp.fft.fft(x), xp.special.expit(x), *xp.unstack(x)),
        *(xp.unique_counts(x).counts, copy.deepcopy(x), pickle.loads(pickle.dumps(x))),
    ]
    for array in arrays:
        assert type(array) is xp.Array
    for tensor in (xp.asarray(plain), xp.sum(plain), xp.concat([x, plain]), xp.zeros_like(plain),
                   xp.where(x > 0, x, plain), xp.linalg.slogdet(plain)[0]):  # fmt: skip
        assert type(tensor) is plugrad.Tensor


BACKWARDS: list[Any] = [
    slice(None, None, -1), (slice(None, None, -2), 1), (..., slice(2, 0, -1)), (0, slice(0, 3, -1)),
    (None, slice(1, None, -1), ..., slice(None, None, -3)), (slice(-1, None, -1), slice(None, 2)),
]  # fmt: skip


@pytest.mark.parametrize("key", BACKWARDS)
def test_slices_that_run_backwards(key: Any) -> None:
    numbers = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(on_numpy(xp.asarray(numbers)[key]), numbers[key])
    written, expected = xp.asarray(numbers.copy()), numbers.copy()
    values = np.arange(float(expected[key].size)).reshape(expected[key].shape) + 100
    written[key], expected[key] = xp.asarray(values), values
    np.testing.assert_array_equal(on_numpy(written), expected)


def test_gradients_of_slices_that_run_backwards() -> None:
    x = xp.asarray([1.0, 2.0, 3.0, 4.0]).requires_grad_()
    weights = xp.asarray([1.0, 10.0])
    y = x * 1
    y[::-2] = y[::-2] * weights
    xp.sum(y).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 10.0, 1.0, 1.0]


def test_a_mask_of_length_zero_selects_nothing() -> None:
    x = xp.ones((2, 3))
    assert x[xp.ones((0,), dtype=xp.bool)].shape == (0, 3)
    assert x[xp.ones((2, 0), dtype=xp.bool)].shape == (0,)
    with pytest.raises(IndexError, match="shape of the mask"):
        x[xp.ones((1,), dtype=xp.bool)]


@pytest.mark.parametrize("dtype", INTEGER)
def test_integers_of_any_dtype_are_indices(dtype: str) -> None:
    x = xp.asarray([5, 6, 7])
    index = xp.asarray([2, 0], dtype=getattr(xp, dtype))
    assert x[index].tolist() == [7, 5]
    x[index] = xp.asarray([1, 2])
    assert x.tolist() == [2, 6, 1]


def test_what_is_no_number_is_not_equal() -> None:
    x: Any = xp.ones(2)
    assert (x == None) is False  # noqa: E711  # the operator is meant
    with pytest.raises(TypeError):
        x + "1"


def test_the_size_is_a_number_that_can_be_called() -> None:
    x = xp.ones((2, 3))
    assert x.size == 6
    assert isinstance(x.size, int)
    assert x.size() == (2, 3)
    assert x.size(1) == x.size(-1) == 3
    assert (xp.ones(()).size, xp.ones((0, 2)).size) == (1, 0)
    assert plugrad.ones(2, 3).size() == (2, 3)


@pytest.mark.parametrize("shape", [(), (2,), (1, 2, 3)])
def test_a_transpose_is_that_of_a_matrix(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"must have two dimensions, not {len(shape)}"):
        _ = xp.ones(shape).T
    if len(shape) < 2:
        with pytest.raises(ValueError, match=f"two dimensions or more, not {len(shape)}"):
            _ = xp.ones(shape).mT
    else:
        assert xp.ones(shape).mT.shape == (1, 3, 2)


def test_a_product_in_place() -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int16)
    before = x
    x @= xp.asarray([[0, 1], [1, 0]], dtype=xp.int8)
    assert x is before
    assert x.tolist() == [[2, 1], [4, 3]]
    for other in (xp.ones((2, 1), dtype=xp.int8), xp.ones((2, 2), dtype=xp.int64)):
        with pytest.raises(ValueError, match="@=: the product has shape"):
            x @= other
    assert x.tolist() == [[2, 1], [4, 3]]


@pytest.mark.parametrize("kind", [int, float])
def test_complex_numbers_are_no_real_numbers(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=f"__{kind.__name__}__.*a complex array is not a real number"
    ):
        kind(xp.asarray(1 + 0j))
    assert kind(xp.asarray(2.0)) == 2
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j


def test_powers_of_numbers_keep_their_gradients() -> None:
    x = xp.asarray([4.0, 9.0]).requires_grad_()
    xp.sum(x**0.5 + xp.pow(x, 0.5)).backward()
    assert x.grad is not None
    assert plugrad.allclose(x.grad, plugrad.tensor([0.5, 1 / 3]))
