"""Calls that must fail, written once for any library with PyTorch's interface."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Call = Callable[[Any], object]
CASES: dict[str, Call] = {}


def case(function: Call) -> Call:
    """Add a function of the library to the table under its own name."""
    CASES[function.__name__] = function
    return function


def leaf(lib: Any, *values: float) -> Any:
    """A float64 vector that requires grad."""
    return lib.tensor(list(values) or [1.0, 2.0], dtype=lib.float64, requires_grad=True)


@case
def backward_of_a_vector_without_gradient(lib: Any) -> object:
    return (leaf(lib) * 2).backward()


@case
def grad_of_a_vector_without_gradient(lib: Any) -> object:
    x = leaf(lib)
    return lib.autograd.grad(x * 2, x)


@case
def backward_of_a_complex_scalar(lib: Any) -> object:
    x = lib.tensor(1 + 2j, requires_grad=True)
    return (x * x).backward()


@case
def backward_of_a_constant(lib: Any) -> object:
    return lib.tensor([1.0]).backward()


@case
def second_of_two_tensors_is_a_constant(lib: Any) -> object:
    return lib.autograd.backward([leaf(lib).sum(), lib.tensor(1.0)])


@case
def backward_under_no_grad_result(lib: Any) -> object:
    with lib.no_grad():
        y = leaf(lib).sum()
    return y.backward()


@case
def gradient_of_wrong_shape(lib: Any) -> object:
    return (leaf(lib) * 2).backward(lib.ones(3, dtype=lib.float64))


@case
def complex_gradient_for_a_real_tensor(lib: Any) -> object:
    return (leaf(lib) * 2).backward(lib.tensor([1j, 1j]))


@case
def gradient_that_is_a_number(lib: Any) -> object:
    return lib.autograd.backward([leaf(lib) * 2], [1.0])


@case
def fewer_gradients_than_tensors(lib: Any) -> object:
    x = leaf(lib)
    return lib.autograd.backward([x * 2, x * 3], [lib.ones(2)])


@case
def backward_twice(lib: Any) -> object:
    y = leaf(lib).exp().sum()
    y.backward()
    return y.backward()


@case
def grad_twice(lib: Any) -> object:
    x = leaf(lib)
    y = (x * x).sum()
    lib.autograd.grad(y, x)
    return lib.autograd.grad(y, x)


@case
def backward_with_empty_inputs(lib: Any) -> object:
    return leaf(lib).sum().backward(inputs=[])


@case
def grad_with_empty_inputs(lib: Any) -> object:
    return lib.autograd.grad(leaf(lib).sum(), [])


@case
def unused_input(lib: Any) -> object:
    return lib.autograd.grad(leaf(lib).sum(), leaf(lib))


@case
def input_without_grad(lib: Any) -> object:
    return lib.autograd.grad(leaf(lib).sum(), lib.ones(2))


@case
def materialize_contradicts_allow_unused(lib: Any) -> object:
    x = leaf(lib)
    return lib.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


@case
def inplace_on_a_leaf(lib: Any) -> object:
    return leaf(lib).mul_(2)


@case
def inplace_on_a_view_of_a_leaf(lib: Any) -> object:
    return leaf(lib).view(2, 1).mul_(2)


@case
def inplace_on_one_of_several_views(lib: Any) -> object:
    first, _ = (leaf(lib) * 1).unbind(0)
    return first.mul_(2)


@case
def saved_input_modified(lib: Any) -> object:
    x = leaf(lib) * 1
    y = x * x
    x.add_(1)
    return y.sum().backward()


@case
def saved_output_modified(lib: Any) -> object:
    y = leaf(lib).exp()
    y.mul_(2)
    return y.sum().backward()


@case
def saved_leaf_modified(lib: Any) -> object:
    x = leaf(lib)
    y = x * x
    with lib.no_grad():
        x.add_(1)
    return y.sum().backward()


@case
def modified_through_a_view(lib: Any) -> object:
    x = leaf(lib) * 1
    y = x.exp()
    y.view(2, 1).add_(1)
    return y.sum().backward()


@case
def integers_require_grad(lib: Any) -> object:
    return lib.tensor([1, 2], requires_grad=True)


@case
def integers_asked_to_require_grad(lib: Any) -> object:
    x = lib.tensor([1, 2])
    x.requires_grad = True
    return x


@case
def requires_grad_of_a_result(lib: Any) -> object:
    y = leaf(lib) * 2
    y.requires_grad = False
    return y


@case
def requires_grad_false_method_on_a_result(lib: Any) -> object:
    return (leaf(lib) * 2).requires_grad_(False)


@case
def retain_grad_of_a_constant(lib: Any) -> object:
    return lib.ones(2).retain_grad()


@case
def hook_on_a_constant(lib: Any) -> object:
    return lib.ones(2).register_hook(print)


@case
def grad_of_wrong_shape_assigned(lib: Any) -> object:
    x = leaf(lib)
    x.grad = lib.ones(3, dtype=lib.float64)
    return x


@case
def grad_of_wrong_dtype_assigned(lib: Any) -> object:
    x = leaf(lib)
    x.grad = lib.ones(2, dtype=lib.float32)
    return x


@case
def grad_that_is_no_tensor_assigned(lib: Any) -> object:
    x = leaf(lib)
    x.grad = 1.0
    return x


@case
def grad_that_is_the_tensor_itself(lib: Any) -> object:
    x = leaf(lib)
    x.grad = x
    return x


@case
def numpy_of_what_requires_grad(lib: Any) -> object:
    return leaf(lib).numpy()


@case
def deepcopy_of_a_result(lib: Any) -> object:
    return copy.deepcopy(leaf(lib) * 2)


@case
def hook_returns_wrong_shape(lib: Any) -> object:
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda grad: lib.ones(3, dtype=lib.float64))
    return y.sum().backward()


@case
def hook_returns_no_tensor(lib: Any) -> object:
    y = leaf(lib) * 2
    y.register_hook(lambda grad: 1)
    return y.sum().backward()


def custom(lib: Any, forward: Any, backward: Any = None) -> Any:
    """A Function called F with these static methods."""
    body: dict[str, object] = {"forward": staticmethod(forward)}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("F", (lib.autograd.Function,), body)


@case
def function_returns_too_many_gradients(lib: Any) -> object:
    f = custom(lib, lambda ctx, x: x * 2, lambda ctx, g: (g, g))
    return f.apply(leaf(lib)).sum().backward()


@case
def function_returns_too_few_gradients(lib: Any) -> object:
    f = custom(lib, lambda ctx, x, y: x * y, lambda ctx, g: g)
    return f.apply(leaf(lib), leaf(lib)).sum().backward()


@case
def function_returns_gradient_of_wrong_shape(lib: Any) -> object:
    f = custom(lib, lambda ctx, x: x * 2, lambda ctx, g: lib.ones(3, dtype=lib.float64))
    return f.apply(leaf(lib)).sum().backward()


@case
def function_returns_gradient_that_is_no_tensor(lib: Any) -> object:
    f = custom(lib, lambda ctx, x: x * 2, lambda ctx, g: 1.0)
    return f.apply(leaf(lib)).sum().backward()


@case
def function_gives_gradient_to_a_number(lib: Any) -> object:
    f = custom(lib, lambda ctx, x, n: x * n, lambda ctx, g: (g, g))
    return f.apply(leaf(lib), 2.0).sum().backward()


@case
def function_without_backward(lib: Any) -> object:
    return custom(lib, lambda ctx, x: x * 2).apply(leaf(lib)).sum().backward()


@case
def function_without_forward(lib: Any) -> object:
    return type("F", (lib.autograd.Function,), {}).apply(leaf(lib))


@case
def function_saves_a_number(lib: Any) -> object:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(1)
        return x * 2

    return custom(lib, forward, lambda ctx, g: g).apply(leaf(lib))


@case
def function_marks_a_leaf_dirty(lib: Any) -> object:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    return custom(lib, forward, lambda ctx, g: g * 2).apply(leaf(lib))


@case
def function_backward_after_release(lib: Any) -> object:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x

    y = custom(lib, forward, backward).apply(leaf(lib)).sum()
    y.backward()
    return y.backward()


@case
def function_raises_in_backward(lib: Any) -> object:
    def backward(ctx: Any, g: Any) -> Any:
        raise KeyError("from backward")

    return custom(lib, lambda ctx, x: x * 2, backward).apply(leaf(lib)).sum().backward()


@case
def bool_of_a_vector(lib: Any) -> object:
    return bool(leaf(lib))


@case
def item_of_a_vector(lib: Any) -> object:
    return leaf(lib).item()
