"""What hooks may return, how they are registered and taken out, and who holds them."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.graph.removable_handle import RemovableHandle

Result = Callable[..., Any]


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values) or [1.0, 2.0], dtype=lib.float64, requires_grad=True)


def outcome(lib: Any, run: Callable[[], Any], x: Any) -> Any:
    """The leaf's gradient, or the type and the words of what was raised."""
    try:
        run()
    except Exception as error:
        return type(error), str(error).replace(f"{lib.__name__}.", "")
    return None if x.grad is None else x.grad.tolist()


TENSOR_RESULTS: list[Callable[[Any], Result]] = [
    lambda lib: lambda grad: 1,
    lambda lib: lambda grad: "text",
    lambda lib: lambda grad: (grad,),
    lambda lib: lambda grad: grad.float(),
    lambda lib: lambda grad: lib.ones(3, dtype=lib.float64),
    lambda lib: lambda grad: lib.ones(3),
    lambda lib: lambda grad: grad * 2,
    lambda lib: lambda grad: None,
    lambda lib: 1,
]


@pytest.mark.parametrize("number", range(len(TENSOR_RESULTS)))
@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_results_of_tensor_hooks_are_checked_as_by_pytorch(
    number: int, kind: str, torch_oracle: ModuleType
) -> None:
    def run(lib: Any) -> Any:
        x = leaf(lib)
        y = x * 2
        hook = TENSOR_RESULTS[number](lib)
        if callable(hook):
            hook.__name__ = "mine"
        (x if kind == "leaf" else y).register_hook(hook)
        return outcome(lib, y.sum().backward, x)

    assert run(plugrad) == run(torch_oracle)


NODE_RESULTS: list[Callable[[Any], Result]] = [
    lambda lib: lambda grads, *inputs: 1,
    lambda lib: lambda grads, *inputs: grads[0],
    lambda lib: lambda grads, *inputs: list(grads),
    lambda lib: lambda grads, *inputs: grads[:-1],
    lambda lib: lambda grads, *inputs: (*grads, None),
    lambda lib: lambda grads, *inputs: (1, *grads[1:]),
    lambda lib: lambda grads, *inputs: (grads[0].float(), *grads[1:]),
    lambda lib: lambda grads, *inputs: (lib.ones(3, dtype=lib.float64), *grads[1:]),
    lambda lib: lambda grads, *inputs: (*grads[:-1], lib.ones(2, dtype=lib.float64)),
    lambda lib: lambda grads, *inputs: tuple(None for _ in grads),
    lambda lib: lambda grads, *inputs: (grads[0] * 2, *grads[1:]),
    lambda lib: 1,
]


@pytest.mark.parametrize("number", range(len(NODE_RESULTS)))
@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_results_of_node_hooks_are_checked_as_by_pytorch(
    number: int, register: str, torch_oracle: ModuleType
) -> None:
    def run(lib: Any) -> Any:
        x = leaf(lib)
        y = x * leaf(lib).detach()
        hook = NODE_RESULTS[number](lib)
        if callable(hook):
            hook.__name__ = "mine"
        getattr(y.grad_fn, register)(hook)
        return outcome(lib, y.sum().backward, x)

    assert run(plugrad) == run(torch_oracle)


POST_ACCUMULATE_RESULTS: list[Callable[[Any], Result]] = [
    lambda lib: lambda tensor: None,
    lambda lib: lambda tensor: tensor,
    lambda lib: lambda tensor: tensor.grad,
    lambda lib: lambda tensor: 5,
    lambda lib: lambda tensor: lib.ones(3),
    lambda lib: lambda tensor: setattr(tensor, "grad", None),
]


@pytest.mark.parametrize("number", range(len(POST_ACCUMULATE_RESULTS)))
def test_results_of_post_accumulate_hooks_are_checked_as_by_pytorch(
    number: int, torch_oracle: ModuleType
) -> None:
    def run(lib: Any) -> Any:
        x = leaf(lib)
        hook = POST_ACCUMULATE_RESULTS[number](lib)
        hook.__name__ = "mine"
        x.register_post_accumulate_grad_hook(hook)
        return outcome(lib, (x * 2).sum().backward, x)

    assert run(plugrad) == run(torch_oracle)


def test_a_hook_without_a_name_is_unknown() -> None:
    class Hook:
        def __call__(self, grad: Any) -> Any:
            return plugrad.ones(3, dtype=plugrad.float64)

    y = leaf(plugrad) * 2
    y.register_hook(Hook())
    with pytest.raises(RuntimeError, match="hook '<unknown>' has changed the size of value"):
        y.sum().backward()


def test_a_missing_gradient_cannot_be_replaced() -> None:
    a, b = (leaf(plugrad) * 1).unbind(0)
    b.register_hook(lambda grad: plugrad.ones((), dtype=plugrad.float64))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        a.backward()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("register_hook", "cannot register a hook on a tensor that doesn't require gradient"),
        (
            "register_post_accumulate_grad_hook",
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
        ("retain_grad", "can't retain_grad on Tensor that has requires_grad=False"),
    ],
)
def test_a_constant_takes_no_hooks(method: str, message: str) -> None:
    arguments = () if method == "retain_grad" else (print,)
    with pytest.raises(RuntimeError, match=message):
        getattr(plugrad.ones(1), method)(*arguments)


def test_a_result_takes_no_hook_after_accumulation() -> None:
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (leaf(plugrad) * 2).register_post_accumulate_grad_hook(print)


def test_hooks_are_kept_in_ordered_dicts_by_handle_number() -> None:
    x = leaf(plugrad)
    y = x * 2
    for tensor in (x, y):
        assert tensor._backward_hooks is None
        handle = tensor.register_hook(print)
        assert isinstance(tensor._backward_hooks, OrderedDict)
        assert list(tensor._backward_hooks.items()) == [(handle.id, print)]
        handle.remove()
        assert tensor._backward_hooks == {}
    assert x._post_accumulate_grad_hooks is None
    handle = x.register_post_accumulate_grad_hook(print)
    assert list(x._post_accumulate_grad_hooks) == [handle.id]


def test_the_dicts_may_be_assigned_but_not_deleted() -> None:
    x = leaf(plugrad, 1.0)
    x._backward_hooks = {0: lambda grad: grad * 10}
    seen: list[Any] = []
    x._post_accumulate_grad_hooks = {0: lambda tensor: seen.append(tensor.grad.tolist())}
    x.sum().backward()
    assert seen == [[10.0]]
    x._backward_hooks = x._post_accumulate_grad_hooks = None
    x.sum().backward()
    assert x.grad.tolist() == [11.0]
    with pytest.raises(RuntimeError, match="Deletion of _backwards_hooks not allowed!"):
        del x._backward_hooks
    with pytest.raises(RuntimeError, match="Deletion of _post_accumulate_grad_hooks not allowed!"):
        del x._post_accumulate_grad_hooks


def test_a_node_runs_the_dict_of_a_tensor_that_is_registered_with_it() -> None:
    x = leaf(plugrad, 1.0)
    y = x * 2
    y._backward_hooks = {0: lambda grad: grad * 10}
    y.grad_fn._register_hook_dict(y)
    y.sum().backward()
    assert x.grad.tolist() == [20.0]
    with pytest.raises(TypeError, match="_register_hook_dict expected a variable"):
        y.grad_fn._register_hook_dict(1)
    with pytest.raises(RuntimeError, match="no _backward_hooks"):
        y.grad_fn._register_hook_dict(plugrad.ones(1))


def test_handles_count_up() -> None:
    x = leaf(plugrad)
    first, second = x.register_hook(print), (x * 2).register_hook(print)
    assert isinstance(first, RemovableHandle)
    assert second.id > first.id


def test_a_handle_refers_to_the_hooks_weakly() -> None:
    gc.disable()
    try:
        y = leaf(plugrad) * 2
        handle = y.register_hook(print)
        assert handle.hooks_dict_ref() is y._backward_hooks
        del y
        assert handle.hooks_dict_ref() is None
        handle.remove()
    finally:
        gc.enable()


def test_a_handle_removes_its_number_from_further_dicts() -> None:
    hooks, one, other = (OrderedDict[int, Any]() for _ in range(3))
    handle = RemovableHandle(hooks, extra_dict=[one, other])
    hooks[handle.id] = one[handle.id] = other[handle.id] = print
    with handle as entered:
        assert entered is handle
    assert hooks == one == other == {}


def test_a_pickled_handle_is_as_good_as_the_hooks_it_comes_with() -> None:
    hooks = OrderedDict[int, Any]()
    handle = RemovableHandle(hooks, extra_dict=hooks)
    hooks[handle.id] = "a hook"
    other_hooks, other = pickle.loads(pickle.dumps((hooks, handle)))
    other.remove()
    assert other_hooks == {}
    assert len(hooks) == 1
    assert RemovableHandle(hooks).id > handle.id
    del hooks, other_hooks
    gc.collect()
    pickle.loads(pickle.dumps(handle)).remove()


def test_hooks_die_with_the_graph_they_belong_to() -> None:
    class Hook:
        def __call__(self, *args: Any) -> None:
            pass

    gc.disable()
    try:
        x = leaf(plugrad)
        y = x * 2
        hooks = [Hook() for _ in range(3)]
        y.register_hook(hooks[0])
        y.grad_fn.register_hook(hooks[1])
        y.grad_fn.register_prehook(hooks[2])
        gone = [weakref.ref(hook) for hook in hooks]
        del hooks
        assert all(reference() is not None for reference in gone)
        del y
        assert [reference() for reference in gone] == [None] * 3
    finally:
        gc.enable()


def test_a_retained_gradient_moves_to_the_output_that_replaces_the_tensor() -> None:
    class WriteBoth(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.mark_dirty(a.add_(1), b.add_(1))
            return a, b

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads

    a, b = leaf(plugrad, 1.0) * 1, leaf(plugrad, 2.0) * 1
    b.retain_grad()
    WriteBoth.apply(a, b)
    (b * 3).sum().backward()
    assert b.output_nr == 1
    assert b.grad.tolist() == [3.0]
