"""`vmap` of operators that check elements, or count by them.

Oracle: a loop over the batch. What is an error for one element is one for the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import vmap

ROWS = plugrad.tensor([[0.0, 1.0, 3.0, 2.0], [-1.0, 5.0, 0.5, 0.5]])


def test_fractions_outside_of_the_range_are_found() -> None:
    fractions = plugrad.tensor([[0.0, 1.0], [0.5, 1.5]])
    with pytest.raises(RuntimeError, match="must be in the range"):
        vmap(plugrad.quantile)(ROWS, fractions)


def test_positions_outside_of_the_tensor_are_found() -> None:
    index = plugrad.tensor([[0, 1], [0, 4]])
    with pytest.raises(IndexError, match="out of range"):
        vmap(lambda x, i: x.index_reduce(0, i, x[:2], "prod"))(ROWS, index)


def test_numbers_with_different_greatest_ones_have_no_counts_of_one_length() -> None:
    numbers = plugrad.tensor([[0, 3], [1, 4]])
    with pytest.raises(RuntimeError, match="equal size"):
        vmap(plugrad.bincount)(numbers)
    assert vmap(lambda x: plugrad.bincount(x, minlength=6))(numbers).tolist() == [
        [1, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 1, 0],
    ]


def test_each_histogram_has_its_own_range() -> None:
    edges = vmap(lambda x: plugrad.histogram(x, 2).bin_edges)(ROWS)
    assert edges.tolist() == [[0.0, 1.5, 3.0], [-1.0, 2.0, 5.0]]
    assert vmap(lambda x: plugrad.histc(x, 2))(ROWS).tolist() == [[2.0, 2.0], [3.0, 1.0]]


def test_an_empty_batch_has_no_counts_of_the_right_length() -> None:
    assert tuple(vmap(lambda x: plugrad.histc(x, 3))(plugrad.zeros(0, 2)).shape) == (0, 3)


def test_what_is_counted_inside_of_a_gradient_is_no_part_of_it() -> None:
    def function(x: Any) -> Any:
        return (x * x).sum() + plugrad.histc(x, 2).sum()

    assert plugrad.equal(vmap(plugrad.func.grad(function))(ROWS), 2 * ROWS)


def test_degrees_of_freedom_are_used_up_for_some_elements() -> None:
    weights = plugrad.tensor([[1, 1, 1, 1], [1, 0, 0, 0]])
    with pytest.warns(UserWarning, match="degrees of freedom"):
        mapped = vmap(lambda x, w: plugrad.cov(x, fweights=w))(ROWS, weights)
    np.testing.assert_allclose(mapped.numpy(), [np.var([0.0, 1.0, 3.0, 2.0], ddof=1), np.nan])


def test_ranks_of_a_batch_decide_on_residuals_together() -> None:
    full = plugrad.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=plugrad.float64)
    right = plugrad.ones(2, 3, 1, dtype=plugrad.float64)
    for matrices in (plugrad.stack([full, 2 * full]), plugrad.stack([full, 0 * full])):
        whole = plugrad.linalg.lstsq(matrices, right, driver="gelsd")
        found = vmap(lambda a, b: tuple(plugrad.linalg.lstsq(a, b, driver="gelsd")))(
            matrices, right
        )
        assert plugrad.allclose(found[0], whole.solution)
        assert plugrad.allclose(found[1].reshape(-1), whole.residuals.reshape(-1))


@pytest.mark.parametrize("reduction", [0, 1])
@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (None, None)])
def test_lengths_of_sequences_may_differ_in_a_batch(reduction: int, dims: Any) -> None:
    generator = np.random.default_rng(0)
    logs = plugrad.from_numpy(generator.normal(size=(2, 4, 2, 3))).log_softmax(3)
    labels = plugrad.tensor([[1, 2], [2, 1]])
    given = (plugrad.tensor([[4, 3], [3, 4]]), plugrad.tensor([[2, 1], [0, 2]]))
    lengths = [item if dim == 0 else item[0] for item, dim in zip(given, dims, strict=True)]

    def loss(logs: Any, steps: Any, sizes: Any) -> Any:
        return plugrad.ctc_loss(logs, labels, steps, sizes, reduction=reduction).sum()

    for function in (loss, plugrad.func.grad(loss)):
        mapped = vmap(function, in_dims=(0, *dims))(logs, *lengths)
        turns = [
            [x if d is None else x[i] for x, d in zip(lengths, dims, strict=True)] for i in (0, 1)
        ]
        looped = [function(logs[i], *turn) for i, turn in enumerate(turns)]
        assert plugrad.allclose(mapped, plugrad.stack(looped))


@pytest.mark.parametrize(
    "function", [plugrad.unique, plugrad.unique_consecutive, lambda x: plugrad.unique(x, dim=0)]
)
def test_different_elements_are_as_many_as_there_are(function: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(function)(ROWS)
