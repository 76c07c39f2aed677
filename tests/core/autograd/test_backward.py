"""backward() and grad(): what their arguments mean."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_backward_adds_in_place_into_an_existing_grad() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    grad = x.grad
    x.sum().backward()
    assert x.grad is grad
    assert grad.tolist() == [2.0, 2.0]


def test_backward_with_create_graph_makes_a_new_grad() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert x.grad.requires_grad
    assert first.tolist() == [1.0, 1.0]


def test_the_gradient_of_a_leaf_is_not_shared_with_the_given_one() -> None:
    x = leaf(1.0, 2.0)
    given = plugrad.ones(2, dtype=plugrad.float64)
    x.backward(given)
    x.backward(given)
    assert given.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


def test_two_leaves_do_not_share_one_gradient() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x + y).sum().backward()
    x.grad.mul_(10)
    assert y.grad.tolist() == [1.0]


def test_gradient_argument_weighs_the_outputs() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(plugrad.tensor([1.0, 10.0], dtype=plugrad.float64))
    assert x.grad.tolist() == [2.0, 40.0]


def test_gradient_of_a_scalar_is_one_by_default() -> None:
    x = leaf(3.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_backward_of_a_leaf_fills_its_own_grad() -> None:
    x = plugrad.tensor(3.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1.0


def test_backward_leaves_intermediate_results_without_grad() -> None:
    x = leaf()
    y = x * 2
    y.sum().backward()
    assert y.grad is None if y.is_leaf else True
    assert not y.is_leaf
    assert not y.retains_grad


def test_backward_of_many_roots_adds_up() -> None:
    x = leaf(1.0, 2.0)
    plugrad.autograd.backward([(x * 2).sum(), (x * x).sum()])
    assert x.grad.tolist() == [4.0, 6.0]


def test_backward_of_the_same_root_twice_counts_twice() -> None:
    x = leaf(1.0)
    y = (x * 3).sum()
    plugrad.autograd.backward([y, y])
    assert x.grad.tolist() == [6.0]


def test_a_root_may_lie_on_the_way_to_another() -> None:
    x = leaf(2.0)
    y = x * x
    z = y * y
    plugrad.autograd.backward([z.sum(), y.sum()])
    assert x.grad.tolist() == [4 * 8.0 + 4.0]


def test_a_none_gradient_stands_for_ones() -> None:
    x = leaf(1.0)
    plugrad.autograd.backward([x.sum(), (x * 2)], [None, plugrad.ones(1, dtype=plugrad.float64)])
    assert x.grad.tolist() == [3.0]


def test_retain_graph_allows_another_pass() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert x.grad.tolist() == (first * 2).tolist()


def test_create_graph_implies_retain_graph() -> None:
    x = leaf(1.0)
    y = x.exp().sum()
    plugrad.autograd.grad(y, x, create_graph=True)
    plugrad.autograd.grad(y, x)


def test_a_graph_without_saved_tensors_may_be_run_again() -> None:
    x = leaf(1.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_second_order() -> None:
    x = leaf(2.0)
    (first,) = plugrad.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = plugrad.autograd.grad(second.sum(), x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]
    assert not third.requires_grad


def test_grad_leaves_grad_alone() -> None:
    x = leaf(1.0)
    (g,) = plugrad.autograd.grad((x * 2).sum(), x)
    assert g.tolist() == [2.0]
    assert x.grad is None


def test_grad_takes_one_tensor_or_several() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = (x * y).sum()
    assert isinstance(plugrad.autograd.grad(z, x, retain_graph=True), tuple)
    a, b = plugrad.autograd.grad(z, [x, y])
    assert (a.item(), b.item()) == (2.0, 1.0)


def test_grad_with_respect_to_an_intermediate_result() -> None:
    x = leaf(2.0)
    y = x * x
    (g,) = plugrad.autograd.grad((y * y).sum(), y)
    assert g.tolist() == [8.0]


def test_grad_with_respect_to_an_output_is_the_given_gradient() -> None:
    y = leaf(2.0) * 3
    weight = plugrad.tensor([7.0], dtype=plugrad.float64)
    assert plugrad.autograd.grad(y, y, weight)[0].tolist() == [7.0]


def test_grad_with_respect_to_a_leaf_that_is_the_output() -> None:
    x = leaf(2.0)
    assert plugrad.autograd.grad(x.sum(), x)[0].tolist() == [1.0]
    weight = plugrad.tensor([7.0], dtype=plugrad.float64)
    assert plugrad.autograd.grad(x, x, weight)[0].tolist() == [7.0]


def test_an_input_and_one_on_the_way_to_it_both_get_gradients() -> None:
    x = leaf(2.0)
    y = x * x
    gy, gx = plugrad.autograd.grad((y * y).sum(), [y, x])
    assert (gy.item(), gx.item()) == (8.0, 32.0)


def test_duplicated_inputs_each_get_the_gradient() -> None:
    x = leaf(2.0)
    a, b = plugrad.autograd.grad((x * x).sum(), [x, x])
    assert (a.item(), b.item()) == (4.0, 4.0)


def test_allow_unused_gives_none() -> None:
    x, y = leaf(1.0), leaf(1.0)
    a, b = plugrad.autograd.grad(x.sum(), [x, y], allow_unused=True)
    assert a.tolist() == [1.0]
    assert b is None


def test_materialize_grads_gives_zeros() -> None:
    x, y = leaf(1.0), leaf(1.0, 2.0)
    _, b = plugrad.autograd.grad(x.sum(), [x, y], materialize_grads=True)
    assert b.tolist() == [0.0, 0.0]
    assert b.dtype is y.dtype


def test_inputs_restrict_what_backward_accumulates_into() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0]
    assert y.grad is None


def test_inputs_may_be_one_tensor() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x * y).sum().backward(inputs=x)
    assert x.grad.tolist() == [2.0]
    assert y.grad is None


def test_inputs_may_be_intermediate_results() -> None:
    x = leaf(2.0)
    y = x * x
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [8.0]
    assert x.grad is None


def test_what_lies_below_the_inputs_keeps_its_saved_tensors() -> None:
    x = leaf(2.0)
    y = x.exp()
    plugrad.autograd.grad(y.sum(), y)
    (y * 1).sum().backward()
    assert x.grad is not None


def test_undefined_gradients_count_as_zero() -> None:
    x = leaf(1.0, 2.0)
    first, _second = (x * x).unbind(0)
    first.backward()
    assert x.grad.tolist() == [2.0, 0.0]


def test_gradient_is_reduced_to_the_shape_of_a_broadcast_input() -> None:
    row, number = leaf(1.0, 2.0), plugrad.tensor(3.0, dtype=plugrad.float64, requires_grad=True)
    column = plugrad.ones(3, 1, dtype=plugrad.float64, requires_grad=True)
    (row * number + column).sum().backward()
    assert row.grad.tolist() == [9.0, 9.0]
    assert number.grad.item() == 9.0
    assert number.grad.shape == ()
    assert column.grad.tolist() == [[2.0], [2.0], [2.0]]


def test_gradient_is_cast_to_the_dtype_of_its_input() -> None:
    low = plugrad.ones(2, dtype=plugrad.float32, requires_grad=True)
    high = plugrad.ones(2, dtype=plugrad.float64, requires_grad=True)
    (low * high).sum().backward()
    assert low.grad.dtype is plugrad.float32
    assert high.grad.dtype is plugrad.float64


def test_a_given_gradient_is_cast_to_the_dtype_of_its_tensor() -> None:
    x = leaf(1.0, 2.0)
    x.backward(plugrad.ones(2, dtype=plugrad.float32))
    assert x.grad.dtype is plugrad.float64
    assert plugrad.autograd.grad(x, x, plugrad.ones(2, dtype=plugrad.float32))[0].dtype is x.dtype


def test_real_input_of_a_complex_result_gets_a_real_gradient() -> None:
    x = leaf(2.0)
    y = x * plugrad.tensor([1 + 1j], dtype=plugrad.complex128)
    (y * y.conj()).real.sum().backward()
    assert x.grad.dtype is plugrad.float64
    assert x.grad.tolist() == [8.0]


def test_backward_of_an_empty_tensor() -> None:
    x = plugrad.zeros(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    assert tuple(x.grad.shape) == (0, 3)


def test_a_constant_path_gets_no_gradient() -> None:
    x = leaf(2.0)
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_sequence_of_outputs_needs_matching_gradients() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        plugrad.autograd.backward([x * 1, x * 2], [None])


def test_mismatching_gradient_is_named_by_its_position() -> None:
    x = leaf(1.0, 2.0)
    gradients = [plugrad.ones(2, dtype=plugrad.float64), plugrad.ones(3, dtype=plugrad.float64)]
    with pytest.raises(RuntimeError, match=r"grad_output\[1\] has a shape of .*\[3\]"):
        plugrad.autograd.backward([x * 1, x * 2], gradients)


def test_grad_mode_of_the_caller_is_back_after_backward() -> None:
    x = leaf(1.0)
    (x * x).sum().backward()
    assert plugrad.is_grad_enabled()
    y = (x * x).sum()
    with plugrad.no_grad():
        y.backward(create_graph=True)
        assert not plugrad.is_grad_enabled()
    assert x.grad.requires_grad
