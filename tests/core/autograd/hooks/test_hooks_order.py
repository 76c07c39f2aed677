"""The order in which hooks run, and which of them: each program does the same with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values) or [1.0, 2.0], dtype=lib.float64, requires_grad=True)


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


class Log:
    """Makes hooks that note their name and what they were called with."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def hook(self, name: str, result: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            self.calls.append([name, plain(args)])
            return None if result is None else result(*args)

        return called

    def take(self, *more: Any) -> Any:
        calls, self.calls = self.calls, []
        return calls, plain(more)


def all_kinds(lib: Any) -> tuple[Any, Any, Any, Log]:
    """A leaf, a result and its sum, with two hooks of every kind, registered in no good order."""
    log = Log()
    x, factor = leaf(lib, 1.0), leaf(lib, 2.0).detach()
    y = x * factor
    accumulator = y.grad_fn.next_functions[0][0]
    y.retain_grad()
    x.register_post_accumulate_grad_hook(log.hook("leaf, after accumulation"))
    y.grad_fn.register_hook(log.hook("node, after"))
    y.grad_fn.register_prehook(log.hook("node, before", lambda grads: (grads[0] * 3,)))
    y.register_hook(log.hook("tensor", lambda grad: grad * 2))
    y.grad_fn.register_prehook(log.hook("node, before, 2"))
    y.register_hook(log.hook("tensor, 2"))
    y.grad_fn.register_hook(
        log.hook(
            "node, after, 2",
            lambda outputs, inputs: None if outputs[0] is None else (outputs[0] * 5, outputs[1]),
        )
    )
    accumulator.register_hook(log.hook("accumulator, after"))
    accumulator.register_prehook(log.hook("accumulator, before"))
    x.register_hook(log.hook("leaf"))
    return x, y, y.sum(), log


def backward(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    s.backward()
    return log.take(x.grad, y.grad)


def grad_of_the_result(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    return log.take(lib.autograd.grad(s, y), x.grad, y.grad)


def grad_of_the_leaf(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    return log.take(lib.autograd.grad(s, x), x.grad, y.grad)


def grad_of_both(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    return log.take(lib.autograd.grad(s, [y, x]), x.grad, y.grad)


def backward_into_the_result(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    s.backward(inputs=[y])
    return log.take(x.grad, y.grad)


def backward_into_the_leaf(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    s.backward(inputs=[x])
    return log.take(x.grad, y.grad)


def backward_into_both(lib: Any) -> Any:
    x, y, s, log = all_kinds(lib)
    s.backward(inputs=[x, y])
    return log.take(x.grad, y.grad)


def gradients_that_nobody_wants_are_not_computed(lib: Any) -> Any:
    log = Log()
    x, w = leaf(lib, 1.0), leaf(lib, 2.0)
    y = x * w
    y.grad_fn.register_hook(log.hook("after"))
    lib.autograd.grad(y.sum(), x, retain_graph=True)
    lib.autograd.grad(y.sum(), w, retain_graph=True)
    y.sum().backward(inputs=[w], retain_graph=True)
    y.sum().backward()
    return log.take()


def hooks_of_several_outputs(lib: Any) -> Any:
    log = Log()
    x = leaf(lib, 1.0, 2.0, 3.0)
    first, second, _ = (x * x.detach()).unbind(0)
    first.grad_fn.register_prehook(log.hook("before"))
    first.grad_fn.register_hook(log.hook("after"))
    second.register_hook(log.hook("second"))
    first.register_hook(log.hook("first"))
    first.backward()
    return log.take(x.grad)


def registered_while_running(lib: Any) -> Any:
    log = Log()
    x = leaf(lib, 1.0)
    y = x * x.detach()

    def register(grad: Any) -> None:
        y.register_hook(log.hook("late tensor"))
        y.grad_fn.register_prehook(log.hook("late node"))

    y.register_hook(register)
    y.sum().backward(retain_graph=True)
    first = log.take()
    y.sum().backward()
    return first, log.take()


def removed_while_running(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 1.0) * 1.0

    def remove(grad: Any) -> None:
        log.calls.append("remove")
        for handle in handles:
            handle.remove()

    handles = [y.register_hook(remove), y.register_hook(log.hook("removed"))]
    y.sum().backward(retain_graph=True)
    first = log.take()
    y.sum().backward()
    return first, log.take()


def written_in_place(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 1.0) * 1.0
    y.register_hook(log.hook("before"))
    y.retain_grad()
    y.mul_(5)
    between = y._backward_hooks
    y.register_hook(log.hook("after"))
    y.sum().backward()
    return log.take(between, y.grad)


def view_written_in_place(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 1.0, 2.0) * 1.0
    view = y[0]
    for name, tensor in (("view", view), ("base", y)):
        tensor.register_hook(log.hook(f"{name} before"))
        tensor.retain_grad()
    view.mul_(5)
    between = [view._backward_hooks, y._backward_hooks]
    for name, tensor in (("view", view), ("base", y)):
        tensor.register_hook(log.hook(f"{name} after"))
    (y.sum() * 3).backward(retain_graph=True)
    first = log.take(y.grad, view.grad, between)
    (view * 7).backward()
    return first, log.take(y.grad, view.grad)


def base_written_in_place(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 1.0, 2.0) * 1.0
    view = y[0]
    view.register_hook(log.hook("before"))
    view.retain_grad()
    y.mul_(5)
    counts = [len(view._backward_hooks), view.grad_fn is None, view._backward_hooks]
    view.register_hook(log.hook("after"))
    (view * 7).backward()
    return log.take(view.grad, counts)


def saved_output_with_hooks_of_its_own(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 0.0).exp()
    y.register_hook(log.hook("tensor"))
    saved = y.grad_fn._saved_result
    before = saved._backward_hooks
    saved.register_hook(log.hook("saved"))
    y.sum().backward()
    return log.take(before, len(y._backward_hooks))


def detached_in_place(lib: Any) -> Any:
    log = Log()
    y = leaf(lib, 1.0) * 1.0
    y.register_hook(log.hook("tensor"))
    y.retain_grad()
    z = (y * 2).sum()
    y.detach_()
    z.backward()
    first = log.take(y.grad)
    y.requires_grad_()
    (y * 3).sum().backward()
    return first, log.take(y.grad, y.retains_grad)


def leaf_in_several_graphs(lib: Any) -> Any:
    log = Log()
    x = leaf(lib, 1.0)
    early = (x * 5).sum()
    x.register_hook(log.hook("leaf", lambda grad: grad * 2))
    x.register_post_accumulate_grad_hook(log.hook("accumulated"))
    early.backward()
    (x * 3).sum().backward()
    (x + x * 2).sum().backward()
    return log.take(x.grad)


def no_gradient_at_all(lib: Any) -> Any:
    log = Log()

    class Nothing(lib.autograd.Function):  # type: ignore[misc]  # a class of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> None:
            return None

    x = leaf(lib, 1.0)
    y = x * x.detach()
    y.retain_grad()
    y.register_hook(log.hook("tensor"))
    z = Nothing.apply(x)
    accumulator = z.grad_fn.next_functions[0][0]
    accumulator.register_prehook(log.hook("accumulator, before"))
    accumulator.register_hook(log.hook("accumulator, after"))
    x.register_hook(log.hook("leaf"))
    x.register_post_accumulate_grad_hook(lambda tensor: log.calls.append(tensor.grad))
    z.sum().backward()
    Nothing.apply(y).sum().backward()
    return log.take(x.grad, y.grad)


def node_hooks_see_fitting_gradients(lib: Any) -> Any:
    log = Log()

    class Expanding(lib.autograd.Function):  # type: ignore[misc]  # a class of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return lib.ones(3, 2)

    x = leaf(lib)
    y = Expanding.apply(x)
    y.grad_fn.register_hook(log.hook("after"))
    y.backward()
    return log.take(x.grad)


def leaf_that_stopped_requiring_grad(lib: Any) -> Any:
    log = Log()
    x = leaf(lib, 1.0)
    x.register_hook(log.hook("leaf"))
    x.register_post_accumulate_grad_hook(lambda tensor: log.calls.append(tensor.grad))
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    return log.take(x.grad)


def retained_twice(lib: Any) -> Any:
    y = leaf(lib, 1.0) * 2.0
    y.retain_grad()
    (y * 3).sum().backward(retain_graph=True)
    first = y.grad
    (y * 3).sum().backward()
    return plain([first, y.grad, first is y.grad])


def retained_with_graph(lib: Any) -> Any:
    x = leaf(lib, 1.0)
    y = x * 2
    y.retain_grad()
    lib.autograd.grad((y * y * x).sum(), x, create_graph=True)
    return plain([y.grad, y.grad.grad_fn.name()])


def same_graph_from_a_hook(lib: Any) -> Any:
    log = Log()
    x = leaf(lib, 2.0)
    y = x * x
    z = (y * y).sum()

    def again(grad: Any) -> None:
        if len(log.calls) == 1:
            z.backward(retain_graph=True)

    y.register_hook(log.hook("again", again))
    z.backward(retain_graph=True)
    return log.take(x.grad)


PROGRAMS = [
    backward,
    grad_of_the_result,
    grad_of_the_leaf,
    grad_of_both,
    backward_into_the_result,
    backward_into_the_leaf,
    backward_into_both,
    gradients_that_nobody_wants_are_not_computed,
    hooks_of_several_outputs,
    registered_while_running,
    removed_while_running,
    written_in_place,
    view_written_in_place,
    base_written_in_place,
    saved_output_with_hooks_of_its_own,
    detached_in_place,
    leaf_in_several_graphs,
    no_gradient_at_all,
    node_hooks_see_fitting_gradients,
    leaf_that_stopped_requiring_grad,
    retained_twice,
    retained_with_graph,
    same_graph_from_a_hook,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_hooks_run_as_in_pytorch(program: Callable[[Any], Any], torch_oracle: ModuleType) -> None:
    assert program(plugrad) == program(torch_oracle)


def test_hooks_of_every_kind_run_in_this_order() -> None:
    calls, (grad, retained) = backward(plugrad)
    assert [name for name, _ in calls] == [
        "tensor",
        "tensor, 2",
        "node, before",
        "node, before, 2",
        "node, after",
        "node, after, 2",
        "leaf",
        "accumulator, before",
        "leaf, after accumulation",
        "accumulator, after",
    ]
    assert (grad, retained) == ([60.0], [2.0])


def test_node_hooks_do_not_run_where_a_gradient_is_only_captured() -> None:
    calls, _ = grad_of_the_result(plugrad)
    assert [name for name, _ in calls] == ["tensor", "tensor, 2"]


@pytest.mark.real_engine
def test_a_node_hook_registered_by_the_node_runs() -> None:
    # Without the inputs, which were not kept for it.
    calls: list[Any] = []

    class Late(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            ctx.register_hook(lambda outputs, inputs: (calls.append(inputs), (outputs[0] * 2,))[1])
            return grads[0]

    x = leaf(plugrad, 1.0)
    Late.apply(x).sum().backward()
    assert calls == [()]
    assert x.grad.tolist() == [2.0]


def test_a_leaf_in_the_interior_of_a_graph_is_an_error() -> None:
    x, w = leaf(plugrad, 1.0), leaf(plugrad, 2.0)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(w)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.backward()
