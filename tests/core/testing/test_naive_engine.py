"""The naive engine against closed forms: an oracle needs tests too."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.testing import naive_backward, naive_grad


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values), dtype=plugrad.float64, requires_grad=True)


def test_gradient_of_a_diamond() -> None:
    x = leaf(2.0)
    y = x * x
    (g,) = naive_grad([(y * y + y).sum()], [x])
    assert g.tolist() == [4 * 8.0 + 4.0]


def test_unreachable_inputs_get_none() -> None:
    x, y = leaf(2.0), leaf(1.0)
    assert naive_grad([x.sum()], [y]) == (None,)


def test_intermediate_results_duplicates_and_outputs() -> None:
    x = leaf(3.0)
    y = x * x
    gy, gx, again = naive_grad([y, y], [y, x, x])
    assert (gy.item(), gx.item(), again.item()) == (2.0, 12.0, 12.0)


def test_given_output_gradients() -> None:
    x = leaf(1.0, 2.0)
    (g,) = naive_grad([x * 2], [x], [plugrad.tensor([1.0, 10.0], dtype=plugrad.float64)])
    assert g.tolist() == [2.0, 20.0]


def test_broadcast_inputs_and_mixed_dtypes() -> None:
    row, column = leaf(1.0, 2.0), plugrad.ones(3, 1, requires_grad=True)
    g_row, g_column = naive_grad([(row * column).sum()], [row, column])
    assert g_row.tolist() == [3.0, 3.0]
    assert g_column.tolist() == [[3.0], [3.0], [3.0]]
    assert g_column.dtype is plugrad.float32


def test_second_order() -> None:
    x = leaf(2.0)
    (first,) = naive_grad([(x**3).sum()], [x], create_graph=True)
    (second,) = naive_grad([first.sum()], [x])
    assert second.tolist() == [12.0]
    assert not naive_grad([(x**3).sum()], [x])[0].requires_grad


def test_backward_accumulates_into_leaves_and_may_run_again() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    naive_backward([y])
    naive_backward([y])
    assert x.grad.tolist() == [8.0]


def test_a_long_chain_needs_no_recursion() -> None:
    x = y = leaf(1.0)
    for _ in range(5_000):
        y = y + x
    assert naive_grad([y.sum()], [x])[0].tolist() == [5_001.0]
