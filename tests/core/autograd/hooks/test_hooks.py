"""Tensor hooks, retain_grad, node hooks."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import plugrad


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def test_a_hook_sees_the_gradient_of_an_intermediate_result() -> None:
    x = leaf(2.0)
    y = x * x
    seen: list[Any] = []
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (y * 3).sum().backward()
    assert seen == [[3.0]]


def test_a_hook_sees_the_sum_of_all_gradients_once() -> None:
    y = leaf(2.0) * 1
    seen: list[Any] = []
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (y * 3 + y * 4).sum().backward()
    assert seen == [[7.0]]


def test_a_hook_on_a_leaf_replaces_what_is_accumulated() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 10)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [20.0]


def test_hooks_run_in_the_order_of_registration_each_on_the_last_result() -> None:
    y = leaf(1.0) * 1
    order: list[str] = []

    def first(grad: Any) -> Any:
        order.append(f"first {grad.item()}")
        return grad * 2

    def second(grad: Any) -> None:
        order.append(f"second {grad.item()}")

    y.register_hook(first)
    y.register_hook(second)
    y.sum().backward()
    assert order == ["first 1.0", "second 2.0"]


def test_a_removed_hook_does_not_run() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda grad: grad * 10)
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_a_handle_is_a_context_manager() -> None:
    x = leaf(1.0)
    with x.register_hook(lambda grad: grad * 10):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [11.0]


def test_a_hook_on_a_leaf_fires_also_when_grad_captures_it() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 10)
    assert plugrad.autograd.grad(x.sum(), x)[0].tolist() == [10.0]


def test_a_hook_on_a_result_changes_what_grad_captures() -> None:
    y = leaf(1.0) * 1
    y.register_hook(lambda grad: grad * 10)
    assert plugrad.autograd.grad(y.sum(), y)[0].tolist() == [10.0]


def test_retain_grad_keeps_the_gradient_of_a_result() -> None:
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * 3).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3.0]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [6.0]


def test_retain_grad_on_a_leaf_does_nothing() -> None:
    x = leaf(2.0)
    x.retain_grad()
    assert not x.retains_grad


def test_retain_grad_sees_what_the_hooks_made_even_of_later_hooks() -> None:
    y = leaf(1.0) * 1
    y.retain_grad()
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert y.grad.tolist() == [2.0]


def test_a_retained_gradient_is_a_copy() -> None:
    y = leaf(1.0) * 1
    y.retain_grad()
    given = plugrad.ones(1, dtype=plugrad.float64)
    y.backward(given)
    y.grad.mul_(5)
    assert given.tolist() == [1.0]


def test_retain_grad_does_not_keep_the_tensor_alive() -> None:
    gc.disable()
    try:
        y = leaf(1.0) * 1
        y.retain_grad()
        z = y.sum()
        gone = weakref.ref(y)
        del y
        assert gone() is None
        z.backward()
    finally:
        gc.enable()


def test_a_hook_registered_before_an_inplace_operation_sees_the_gradient_before_it() -> None:
    y = leaf(1.0) * 1
    seen: list[float] = []
    y.register_hook(lambda grad: seen.append(grad.item()))
    y.mul_(5)
    y.register_hook(lambda grad: seen.append(grad.item()))
    y.sum().backward()
    assert seen == [1.0, 5.0]


def test_post_accumulate_grad_hook_sees_the_new_grad() -> None:
    x = leaf(1.0)
    seen: list[Any] = []
    handle = x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.tolist()))
    x.sum().backward()
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [[1.0], [2.0]]


def test_a_node_hook_runs_after_the_node_and_may_replace_its_outputs() -> None:
    x = leaf(3.0)
    y = x * x.detach()
    seen: list[Any] = []

    def hook(grad_inputs: Any, grad_outputs: Any) -> Any:
        seen.append((grad_inputs[0].tolist(), grad_outputs[0].tolist()))
        return (grad_inputs[0] * 2, *grad_inputs[1:])

    y.grad_fn.register_hook(hook)
    y.sum().backward()
    assert seen == [([3.0], [1.0])]
    assert x.grad.tolist() == [6.0]


def test_a_node_prehook_may_replace_its_inputs() -> None:
    x = leaf(3.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.sum().backward()
    assert x.grad.tolist() == [20.0]


def test_hooks_record_when_the_graph_is_created() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    assert first.tolist() == [8.0]
    assert second.tolist() == [8.0]


def test_an_exception_in_a_hook_reaches_the_caller() -> None:
    y = leaf() * 1

    def hook(grad: Any) -> None:
        raise KeyError("in hook")

    y.register_hook(hook)
    with pytest.raises(KeyError, match="in hook"):
        y.sum().backward()
