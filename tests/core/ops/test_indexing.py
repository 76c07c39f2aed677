"""Indexing: the shared suite, repeated indices, and gradients PyTorch does not give."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestIndexing(OpSuite):
    cases = family_cases("indexing")


def double(*shape: int) -> plugrad.Tensor:
    count = 1
    for size in shape:
        count *= size
    made = plugrad.arange(count, dtype=plugrad.float64) / 7
    return made.reshape(shape).requires_grad_()


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_source_larger_than_the_index(name: str) -> None:
    """PyTorch returns a gradient of the wrong shape here and raises."""
    index = plugrad.tensor([[0, 1], [2, 0]])

    def function(x: plugrad.Tensor, src: plugrad.Tensor) -> plugrad.Tensor:
        return getattr(x, name)(1, index, src)

    assert gradcheck(function, (double(2, 3), double(3, 4)))
    assert gradgradcheck(function, (double(2, 3), double(3, 4)))


def test_index_fill_with_negative_indices_has_a_gradient() -> None:
    index = plugrad.tensor([0, -1])
    assert gradcheck(lambda x, v: x.index_fill(1, index, v), (double(2, 3), double()))


@pytest.mark.parametrize("dtype", [plugrad.float32, plugrad.bfloat16, plugrad.int64])
@pytest.mark.parametrize("turned", [False, True])
def test_adding_counts_repeated_indices(dtype: plugrad.dtype, turned: bool) -> None:
    index = plugrad.tensor([0, 2, 0, 0])
    ones = plugrad.ones(4, 2, dtype=dtype)
    x = plugrad.zeros(2, 3, dtype=dtype).t() if turned else plugrad.zeros(3, 2, dtype=dtype)
    expected = [[3, 3], [0, 0], [1, 1]]
    assert x.index_add(0, index, ones).tolist() == expected
    assert x.index_put([index], ones, accumulate=True).tolist() == expected
    assert x.scatter_add(0, index.unsqueeze(1).expand(4, 2), ones).tolist() == expected
    x.index_add_(0, index, ones)
    assert x.tolist() == expected


def test_in_place_writes_reach_the_memory_of_a_view() -> None:
    x = plugrad.zeros(2, 3)
    x.t().index_put_([plugrad.tensor([2])], plugrad.tensor(5.0))
    x[0].masked_fill_(plugrad.tensor([True, False, False]), 9)
    x[1].scatter_(0, plugrad.tensor([1]), 7)
    assert x.tolist() == [[9, 0, 5], [0, 7, 5]]


def test_in_place_errors_leave_the_tensor_as_it_was() -> None:
    x = plugrad.zeros(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.masked_fill_(plugrad.ones(3, 2, dtype=plugrad.bool), 1)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x.index_put_([plugrad.tensor([0, 5])], plugrad.tensor(1.0))
    assert x.tolist() == [0, 0]
    assert x._version == 0


def test_byte_masks_warn() -> None:
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        found = plugrad.index(plugrad.tensor([1, 2]), [plugrad.tensor([0, 1], dtype=plugrad.uint8)])
    assert found.tolist() == [2]


def test_indexing_copies() -> None:
    x = plugrad.zeros(3)
    plugrad.index(x, [plugrad.tensor([0, 1])]).fill_(1)
    x.masked_select(plugrad.ones(3, dtype=plugrad.bool)).fill_(1)
    x.index_select(0, plugrad.tensor([0])).fill_(1)
    x.take(plugrad.tensor([0])).fill_(1)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0], RuntimeError, "destination dtypes match, got Float .* and ComplexFloat"),
        ([9], RuntimeError, "destination dtypes match"),
        ([0.5], IndexError, "must be long, int, byte or bool"),
        ([[0, 1], [0, 1, 1]], IndexError, r"could not be broadcast .* shapes \[2\], \[3\]"),
        ([0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    ],
)
def test_what_is_wrong_with_indices_is_said_before_the_dtype(
    indices: list[object], error: type[Exception], message: str
) -> None:
    value = plugrad.ones((), dtype=plugrad.complex64)
    with pytest.raises(error, match=message):
        plugrad.zeros(2, 2).index_put([plugrad.tensor(index) for index in indices], value)


def test_no_index_of_a_dimension_without_elements_is_within() -> None:
    with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
        plugrad.zeros(0, 1)[[0]] = plugrad.ones((), dtype=plugrad.complex64)
