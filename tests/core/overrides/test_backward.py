"""What overrides see of a backward pass: the user's own code, and no formulas."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.overrides import resolve_name

SEEN: list[str] = []


def _note(func: Any) -> None:
    SEEN.append(str(resolve_name(func)).removeprefix("plugrad."))


class Logged(Tensor):
    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _note(func)
        return super().__plugrad_function__(func, types, args, kwargs)


def _graph() -> tuple[Any, Any]:
    x = Logged([1.0, 2.0]).requires_grad_()
    y = (x.exp() * x / 3).log().sum()
    SEEN.clear()
    return x, y


def test_backward_is_seen_and_its_formulas_are_not() -> None:
    _, y = _graph()
    y.backward()
    assert SEEN == ["Tensor.backward"]


def test_the_functions_are_seen() -> None:
    x, y = _graph()
    plugrad.autograd.grad(y, x, retain_graph=True)
    plugrad.autograd.backward([y])
    assert SEEN == ["autograd.grad", "autograd.backward"]


def test_formulas_are_not_seen_when_the_pass_is_not_overridden() -> None:
    x, y = _graph()
    with plugrad.overrides.DisablePlugradFunctionSubclass():
        root = y.as_subclass(Tensor)
    SEEN.clear()
    root.backward()
    assert SEEN == []
    assert type(x.grad) is Tensor


def test_hooks_are_seen() -> None:
    leaf = plugrad.ones(2, requires_grad=True)
    y = leaf * 2

    def hook(grad: Any) -> Any:
        return grad.as_subclass(Logged).mul(3).as_subclass(Tensor)

    def after(x: Any) -> None:
        x.as_subclass(Logged).size()

    y.register_hook(hook)
    y.grad_fn.register_prehook(lambda grads: (grads[0].as_subclass(Logged).neg(),))
    y.grad_fn.register_hook(lambda grads, _: (grads[0].as_subclass(Logged).abs(), *grads[1:]))
    leaf.register_post_accumulate_grad_hook(after)
    SEEN.clear()
    y.sum().backward()
    assert [name.removeprefix("Tensor.") for name in SEEN] == ["mul", "neg", "abs", "size"]


def test_the_backward_of_a_function_is_seen() -> None:
    class Twice(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0].as_subclass(Logged).mul(2)

    x = plugrad.ones(2, requires_grad=True)
    y = Twice.apply(x).sum()
    SEEN.clear()
    y.backward()
    assert SEEN == ["Tensor.mul"]


def test_hooks_that_unpack_saved_tensors_are_seen() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.autograd.graph.saved_tensors_hooks(
        lambda t: t, lambda t: t.as_subclass(Logged).mul(1).as_subclass(Tensor)
    ):
        y = x.exp().sum()
    SEEN.clear()
    y.backward()
    assert SEEN == ["Tensor.mul"]
