"""Bags, distances, shuffles and norms of channels: the shared suites, and what is not in them."""

from __future__ import annotations

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestEmbeddingBag(OpSuite):
    cases = family_cases("embedding_bag")


class TestDistances(OpSuite):
    cases = family_cases("distances")


class TestChannels(OpSuite):
    cases = family_cases("channels")


def test_gradient_of_a_bag_is_scaled_by_how_often_a_row_occurs() -> None:
    weight = plugrad.zeros(3, 1, requires_grad=True)
    rows, offsets = plugrad.tensor([1, 1, 2, 1]), plugrad.tensor([0, 1])
    plugrad.embedding_bag(weight, rows, offsets, True)[0].sum().backward()
    assert weight.grad is not None
    assert weight.grad.flatten().tolist() == [0, 1, 1]


def test_the_first_of_equal_maxima_gets_the_gradient() -> None:
    weight = plugrad.ones(3, 1, requires_grad=True)
    plugrad.embedding_bag(weight, plugrad.tensor([2, 1, 0]), plugrad.tensor([0]), mode=2)[
        0
    ].sum().backward()
    assert weight.grad is not None
    assert weight.grad.flatten().tolist() == [0, 0, 1]


def test_bags_under_vmap_are_those_of_each_element() -> None:
    weight = plugrad.arange(8.0).reshape(4, 2)
    rows, offsets = plugrad.tensor([[0, 1, 2], [3, 3, 0]]), plugrad.tensor([[0, 2], [0, 1]])
    found = plugrad.vmap(lambda r, o: plugrad.embedding_bag(weight, r, o)[0])(rows, offsets)
    assert found.tolist() == [[[2, 4], [4, 5]], [[6, 7], [6, 8]]]


def test_instance_norm_moves_running_statistics_by_means_over_the_batch() -> None:
    x = plugrad.tensor([[[0.0, 2.0]], [[4.0, 8.0]]])
    mean, var = plugrad.zeros(1), plugrad.zeros(1)
    plugrad.instance_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)
    assert mean.tolist() == [(1 + 6) / 2 / 2]
    assert var.tolist() == [(2 + 8) / 2 / 2]


def test_distance_of_equal_rows_has_gradient_zero() -> None:
    x = plugrad.ones(2, 2, requires_grad=True)
    plugrad.pdist(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0], [0, 0]]
