"""What a Function's `backward` may return and do; run on plugrad and on PyTorch."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import plugrad


def function(lib: Any, forward: Any, backward: Any, **members: Any) -> Any:
    """A Function called My, of these static methods and attributes."""
    members["forward"] = staticmethod(forward)
    members["backward"] = staticmethod(backward)
    return type(lib.autograd.Function)("My", (lib.autograd.Function,), members)


def copying(lib: Any, backward: Callable[..., Any]) -> Any:
    """A Function of any arguments that copies the first."""
    return function(lib, lambda ctx, x, *rest: x * 1, backward)


def leaf(lib: Any) -> Any:
    return lib.ones(3, requires_grad=True)


def names(node: Any) -> str:
    """A node and what it leads to, as text."""
    if node is None:
        return "None"
    return f"{type(node).__name__}({', '.join(names(next_) for next_, _ in node.next_functions)})"


@pytest.mark.parametrize(
    ("backward", "got"), [(lambda ctx, g: (), 0), (lambda ctx, g: (g, None, g), 3)]
)
def test_a_wrong_number_of_gradients(lib: Any, backward: Any, got: int) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"function MyBackward returned an incorrect number of gradients "
        rf"\(expected 2, got {got}\)",
    ):
        copying(lib, backward).apply(leaf(lib), 5).sum().backward()


def test_surplus_none_is_all_right(lib: Any) -> None:
    x = leaf(lib)
    copying(lib, lambda ctx, g: (g, None, None, None)).apply(x, 5).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("value", "kind"), [(5, "int"), ([1], "list"), ("g", "str")])
def test_a_gradient_that_is_no_tensor(lib: Any, value: Any, kind: str) -> None:
    with pytest.raises(RuntimeError, match=rf"expected Variable or None \(got {kind}\)"):
        copying(lib, lambda ctx, g: value).apply(leaf(lib)).sum().backward()


def test_a_gradient_for_an_argument_that_is_no_tensor(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match="function MyBackward returned a gradient different than None at position 2, but the "
        "corresponding forward input was not a Variable",
    ):
        copying(lib, lambda ctx, g: (g, g)).apply(leaf(lib), 5).sum().backward()


@pytest.mark.real_engine
def test_a_gradient_of_a_shape_that_does_not_fit(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"Function MyBackward returned an invalid gradient at index 1 - got \[2\] but "
        r"expected shape compatible with \[3\]",
    ):
        # The index counts tensors only.
        copying(lib, lambda ctx, g: (g, None, lib.ones(2))).apply(
            leaf(lib), 5, leaf(lib)
        ).sum().backward()


def test_a_gradient_of_a_larger_shape_is_summed(lib: Any) -> None:
    x = leaf(lib)
    copying(lib, lambda ctx, g: g.expand(4, 3)).apply(x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
def test_a_gradient_of_another_dtype_is_cast(lib: Any, dtype: str) -> None:
    x = leaf(lib)
    copying(lib, lambda ctx, g: g.to(getattr(lib, dtype))).apply(x).sum().backward()
    assert x.grad.dtype is lib.float32


def test_a_complex_gradient_for_a_real_argument(lib: Any) -> None:
    with pytest.raises(RuntimeError, match=r"input_is_complex == grad_is_complex\) to be true"):
        copying(lib, lambda ctx, g: g.to(lib.complex64)).apply(leaf(lib)).sum().backward()


def test_a_complex_gradient_for_a_complex_argument(lib: Any) -> None:
    z = lib.tensor([1j], requires_grad=True)
    copying(lib, lambda ctx, g: g * 2j).apply(z).real.sum().backward()
    assert z.grad.tolist() == [2j]


@pytest.mark.real_engine
def test_a_gradient_on_another_device(second_backend: str) -> None:
    x = leaf(plugrad)
    with pytest.raises(
        RuntimeError,
        match="Function MyBackward returned an invalid gradient at index 0 - expected device cpu "
        "but got second",
    ):
        copying(plugrad, lambda ctx, g: g.to(second_backend)).apply(x).sum().backward()
    # A number may come from anywhere.
    y = plugrad.tensor(1.0, requires_grad=True)
    copying(plugrad, lambda ctx, g: g.to(second_backend)).apply(y).backward()
    assert y.grad is not None
    assert y.grad.device.type == "cpu"


def test_a_gradient_for_an_argument_that_needs_none_is_dropped(lib: Any) -> None:
    x, y = leaf(lib), lib.ones(3)
    copying(lib, lambda ctx, g: (g, g)).apply(x, y).sum().backward()
    assert y.grad is None


def test_vjp_is_another_name_for_backward(lib: Any) -> None:
    my = function(lib, lambda ctx, x: x * 1, None)
    del my.backward
    my.vjp = staticmethod(lambda ctx, g: g * 7)
    x = leaf(lib)
    my.apply(x).sum().backward()
    assert x.grad.tolist() == [7, 7, 7]


def test_backward_and_vjp_together(lib: Any) -> None:
    my = function(lib, lambda ctx, x: x * 1, lambda ctx, g: g, vjp=staticmethod(lambda ctx, g: g))
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom"):
        my.apply(leaf(lib)).sum().backward()


def test_without_backward_forward_still_runs(lib: Any) -> None:
    my = function(lib, lambda ctx, x: x * 1, None)
    del my.backward
    y = my.apply(leaf(lib))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
        y.sum().backward()


def test_backward_with_too_few_parameters(lib: Any) -> None:
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        copying(lib, lambda ctx: None).apply(leaf(lib)).sum().backward()


class Failure(Exception):
    """An exception of the user's own."""


def fail(*args: Any) -> Any:
    raise Failure("here")


def test_exceptions_keep_their_type(lib: Any) -> None:
    with pytest.raises(Failure, match="here"):
        function(lib, fail, None).apply(leaf(lib))
    assert lib.is_grad_enabled()
    with pytest.raises(Failure, match="here"):
        copying(lib, fail).apply(leaf(lib)).sum().backward()
    x = leaf(lib)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_exceptions_in_setup_context(lib: Any) -> None:
    my = function(lib, lambda x: x * 1, None, setup_context=staticmethod(fail))
    with pytest.raises(Failure, match="here"):
        my.apply(leaf(lib))
    assert lib.is_grad_enabled()


def test_backward_is_recorded_only_with_create_graph(lib: Any) -> None:
    modes: list[bool] = []

    def backward(ctx: Any, grad: Any) -> Any:
        modes.append(lib.is_grad_enabled())
        return grad

    for create_graph in (False, True):
        x = leaf(lib)
        y = copying(lib, backward).apply(x).sum()
        lib.autograd.grad(y, x, create_graph=create_graph)
    assert modes == [False, True]


def cube(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x

    return function(lib, forward, backward)


def test_functions_in_functions(lib: Any) -> None:
    inner = cube(lib)

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        result = inner.apply(x)
        assert result.grad_fn is None
        return result

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        with lib.enable_grad():
            again = x.detach().requires_grad_()
            (inner_grad,) = lib.autograd.grad(inner.apply(again), again, grad)
        return inner_grad

    x = leaf(lib)
    function(lib, forward, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_third_derivatives(lib: Any) -> None:
    x = lib.tensor(2.0, requires_grad=True)
    y = cube(lib).apply(x)
    for expected in (12.0, 12.0, 6.0):
        (y,) = lib.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_backward_that_applies_another_function(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**4

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 4 * cube(lib).apply(ctx.saved_tensors[0])

    x = lib.tensor(2.0, requires_grad=True)
    (first,) = lib.autograd.grad(function(lib, forward, backward).apply(x), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert (first.item(), second.item()) == (32.0, 48.0)


def test_hooks_on_the_node_of_a_function(lib: Any) -> None:
    seen: list[Any] = []
    x = leaf(lib)
    y = function(lib, lambda ctx, x: (x * 1, x * 2), lambda ctx, g, h: g + h).apply(x)
    node = y[0].grad_fn
    node.register_prehook(lambda grads: seen.append(("pre", grads[1])))
    node.register_hook(
        lambda inputs, outputs: seen.append(("post", outputs[1])) or (inputs[0] * 3,)
    )
    y[0].sum().backward()
    assert seen == [("pre", None), ("post", None)]
    assert x.grad.tolist() == [3, 3, 3]


def once(lib: Any, backward: Any) -> Any:
    def forward(ctx: Any, x: Any, *rest: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    return function(lib, forward, lib.autograd.function.once_differentiable(backward))


def test_once_differentiable_runs_unrecorded(lib: Any) -> None:
    modes: list[bool] = []

    def backward(ctx: Any, grad: Any) -> Any:
        """Says what it does."""
        modes.append(lib.is_grad_enabled())
        return grad

    my = once(lib, backward)
    assert my.backward.__doc__ == "Says what it does."
    x = leaf(lib)
    (gradient,) = lib.autograd.grad(my.apply(x), x, lib.ones(3), create_graph=True)
    assert modes == [False]
    # Nothing that came in requires grad: the result is a constant.
    assert gradient.grad_fn is None


def test_once_differentiable_results_refuse_to_be_differentiated(lib: Any) -> None:
    my = once(lib, lambda ctx, g: (g * 2, None, g * 3, None))
    x, z, weight = leaf(lib), leaf(lib), leaf(lib)
    first, second = lib.autograd.grad(my.apply(x, 1, z), (x, z), weight, create_graph=True)
    assert first.tolist() == [2, 2, 2]
    assert names(first.grad_fn) == "Error(AccumulateGrad(), None, AccumulateGrad(), None)"
    assert first.grad_fn is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 2)
    with pytest.raises(
        RuntimeError,
        match="trying to differentiate twice a function that was marked with @once_differentiable",
    ):
        first.sum().backward()


def test_once_differentiable_of_one_gradient(lib: Any) -> None:
    x, weight = leaf(lib), leaf(lib)
    my = once(lib, lambda ctx, g: g * 2)
    (gradient,) = lib.autograd.grad(my.apply(x), x, weight, create_graph=True)
    assert names(gradient.grad_fn) == "Error(AccumulateGrad())"
    with lib.no_grad():
        assert my.backward(None, weight).grad_fn is None


def test_an_error_in_backward_frees_the_graph(lib: Any) -> None:
    x = leaf(lib)
    y = copying(lib, fail).apply(x)
    gone = weakref.ref(y.grad_fn)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Failure) as caught:
            y.sum().backward()
        del y
        caught.value.__traceback__ = None
        del caught
        assert gone() is None
    finally:
        gc.enable()
