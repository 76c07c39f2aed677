"""`plugrad._C`: the internals that programs written for PyTorch reach for."""

from __future__ import annotations

import gc
from typing import Any

import pytest


def accumulator(leaf: Any) -> Any:
    return leaf.clone().grad_fn.next_functions[0][0]


def test_the_current_node_is_the_one_that_runs(lib: Any) -> None:
    seen = []
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sin()
    y.register_hook(lambda grad: seen.append(lib._C._current_autograd_node()))
    z.register_hook(lambda grad: seen.append(lib._C._current_autograd_node()))
    assert lib._C._current_autograd_node() is None
    z.sum().backward()
    assert [node.name() for node in seen] == ["SinBackward0", "ExpBackward0"]
    assert lib._C._current_autograd_node() is None


def test_after_a_nested_pass_the_outer_node_is_current_again(lib: Any) -> None:
    seen = []
    x = lib.ones(2, requires_grad=True)

    def hook(grad: Any) -> None:
        with lib.enable_grad():
            lib.ones(2, requires_grad=True).cos().sum().backward()
        seen.append(lib._C._current_autograd_node().name())

    y = x.exp()
    y.register_hook(hook)
    y.sum().backward()
    assert seen == ["ExpBackward0"]


def test_a_failed_pass_leaves_no_current_node(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = lib._C._functions.DelayedError("boom", 1)(x)
    with pytest.raises(RuntimeError, match="boom"):
        y.sum().backward()
    assert lib._C._current_autograd_node() is None


def test_an_unpack_hook_may_add_a_hook_to_the_node_that_runs(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)

    def unpack(tensor: Any) -> Any:
        node = lib._C._current_autograd_node()
        node.register_hook(lambda grads, _: (grads[0] / 2,))
        return tensor

    with lib.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.sin()
    (grad,) = lib.autograd.grad(y.sum(), x)
    assert lib.allclose(grad, x.cos() / 2)


def test_passes_are_numbered(lib: Any) -> None:
    numbers = []
    x = lib.ones((), requires_grad=True).clone()
    x.register_hook(lambda grad: numbers.append(lib._C._current_graph_task_id()))
    for _ in range(3):
        x.backward(retain_graph=True)
    assert [number - numbers[0] for number in numbers] == [0, 1, 2]
    assert lib._C._current_graph_task_id() == -1


def test_which_nodes_a_pass_runs(lib: Any) -> None:
    a, b = (lib.ones(2, requires_grad=True) for _ in range(2))
    product = a * b
    unused = product.cos()
    answers = []
    nodes = [accumulator(a), accumulator(b), product.grad_fn, unused.grad_fn]

    def hook(grad: Any) -> None:
        answers.append([lib._C._will_engine_execute_node(node) for node in nodes])

    product.register_hook(hook)
    out = product.sum()
    lib.autograd.backward(out, inputs=(a,), retain_graph=True)
    lib.autograd.backward(out, retain_graph=True)
    assert answers == [[True, False, True, False], [True, True, True, False]]
    with pytest.raises(RuntimeError, match="currently running"):
        lib.autograd.grad(out, (a,))


def test_what_asking_for_nodes_refuses(lib: Any) -> None:
    y = lib.ones(2, requires_grad=True).clone()
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        lib._C._will_engine_execute_node(y.grad_fn)
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        lib._C._will_engine_execute_node(y)


def order_of(lib: Any, outputs: Any, hooked: Any, **options: Any) -> list[str]:
    orders: list[Any] = []
    handle = hooked.register_hook(
        lambda grad: orders.append(lib._C._current_graph_task_execution_order())
    )
    with lib.autograd.set_multithreading_enabled(False):
        lib.autograd.backward(outputs, retain_graph=True, **options)
    handle.remove()
    return [type(node).__name__ for node in orders[0]]


def test_the_order_of_a_pass(lib: Any) -> None:
    a, b = (lib.ones((), requires_grad=True) for _ in range(2))
    c = b.sin()
    d = a.cos()
    out = c * d
    assert order_of(lib, out, out) == [
        "MulBackward0",
        "CosBackward0",
        "AccumulateGrad",
        "SinBackward0",
        "AccumulateGrad",
    ]
    assert order_of(lib, out, out, inputs=[b]) == ["MulBackward0", "SinBackward0", "AccumulateGrad"]
    first, second = out.exp(), out.tan()
    assert order_of(lib, (first, second), second)[:3] == [
        "TanBackward0",
        "ExpBackward0",
        "MulBackward0",
    ]


def test_what_asking_for_the_order_refuses(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        lib._C._current_graph_task_execution_order()
    x = lib.ones((), requires_grad=True).clone()
    x.register_hook(lambda grad: lib._C._current_graph_task_execution_order())
    with pytest.raises(RuntimeError, match="to be executed with multithreading disabled"):
        x.backward()


def test_undefined_gradients(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    lib._C._functions.UndefinedGrad()(x.clone()).sum().backward()
    assert x.grad is None
    assert isinstance(accumulator(x), lib._C._functions.AccumulateGrad)


def test_delayed_errors_pass_several_tensors_on(lib: Any) -> None:
    x, y = (lib.ones(2, requires_grad=True) for _ in range(2))
    u, v = lib._C._functions.DelayedError("boom", 2)(x, y)
    assert u.tolist() == v.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="boom"):
        v.sum().backward()


def test_weak_references(lib: Any) -> None:
    x = lib.ones(2)
    reference = lib._C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    gc.collect()
    assert reference.expired()


def test_version_counters_by_hand(lib: Any) -> None:
    x = lib.ones(2).add_(1)
    with lib.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2).mul_(3)
    assert x._version == 1
    lib._C._autograd._unsafe_set_version_counter((x,), (0,))
    assert x._version == 0
    with pytest.raises(RuntimeError, match="Cannot set"):
        lib._C._autograd._unsafe_set_version_counter((x,), (-1,))
    y = lib.ones(2)
    with lib.autograd._unsafe_preserve_version_counter((x, y)):
        x.mul_(2)
        y.mul_(2)
    assert x._version == y._version == 0


def test_hooks_on_saved_tensors(lib: Any) -> None:
    internals = lib._C._autograd
    x = lib.ones(2, requires_grad=True)
    internals._push_saved_tensors_default_hooks(lambda t: t * 2, lambda t: t)
    y = x * x
    internals._pop_saved_tensors_default_hooks()
    assert y.grad_fn._saved_self.tolist() == [2, 2]
    assert internals._saved_tensors_hooks_is_enabled()
    internals._saved_tensors_hooks_disable("not now")
    try:
        assert not internals._saved_tensors_hooks_is_enabled()
        assert internals._saved_tensors_hooks_get_disabled_error_message() == "not now"
    finally:
        internals._saved_tensors_hooks_enable()


def test_grad_mode(lib: Any) -> None:
    lib._C._set_grad_enabled(False)
    try:
        assert not lib._C.is_grad_enabled()
    finally:
        lib._C._set_grad_enabled(True)
    assert lib.is_grad_enabled()


def test_whether_the_pass_retains_the_graph(lib: Any) -> None:
    answers = []
    x = lib.ones(2, requires_grad=True).clone()
    x.register_hook(
        lambda grad: answers.append(lib._C._autograd._get_current_graph_task_keep_graph())
    )
    x.sum().backward(retain_graph=True)
    x.sum().backward()
    assert answers == [True, False]


def test_a_view_of_another_base(lib: Any) -> None:
    base = lib.zeros(2, 3)
    other = lib.tensor([[0.0, 2, 4], [6, 8, 10]])
    assert base[1][1:]._view_func(other).tolist() == [8, 10]


@pytest.mark.parametrize("is_output", [False, True])
def test_saving_a_tensor_for_nobody(lib: Any, is_output: bool) -> None:
    x = lib.ones(2, requires_grad=True)
    saved = lib._C._autograd._make_saved_tensor(x, is_output=is_output)
    assert isinstance(saved, lib.autograd.SavedTensor)
    if not is_output:
        assert saved.unpack() is x
