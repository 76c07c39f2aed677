"""`grad`, `grad_and_value` and `vjp`. Oracle: closed forms, and PyTorch's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.func import grad, grad_and_value, vjp, vmap

X = plugrad.arange(3.0)


def cubes(x: plugrad.Tensor) -> plugrad.Tensor:
    return (x * x * x).sum()


def test_gradients_of_gradients() -> None:
    assert grad(cubes)(X).tolist() == [0.0, 3.0, 12.0]
    assert grad(lambda x: grad(cubes)(x).sum())(X).tolist() == [0.0, 6.0, 12.0]
    assert vmap(grad(grad(lambda x: x * x * x)))(X).tolist() == [0.0, 6.0, 12.0]
    assert grad(lambda x: vmap(lambda y: y * y * y)(x).sum())(X).tolist() == [0.0, 3.0, 12.0]


def test_perturbations_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y)) is 1, and not 2.
    one = plugrad.tensor(1.0)
    assert grad(lambda x: x * grad(lambda y: x + y)(one))(one).item() == 1.0


def test_several_arguments_and_auxiliary_results() -> None:
    def product(x: Any, y: Any) -> Any:
        return (x * y["a"]).sum(), {"twice": x * 2}

    grads, aux = grad(product, argnums=(0, 1), has_aux=True)(X, {"a": X + 1})
    assert grads[0].tolist() == [1.0, 2.0, 3.0]
    assert grads[1]["a"].tolist() == [0.0, 1.0, 2.0]
    assert aux["twice"].tolist() == [0.0, 2.0, 4.0]
    assert not aux["twice"].requires_grad
    found, (value, _) = grad_and_value(product, argnums=-1, has_aux=True)(X, {"a": X})
    assert (found["a"].tolist(), value.item()) == ([0.0, 1.0, 2.0], 5.0)


def test_the_product_function_may_be_called_often_and_mapped() -> None:
    outputs, vjp_fn = vjp(lambda x: (x * 2, x.sum()), X)
    assert outputs[1].item() == 3.0
    assert vjp_fn((X, X.sum()))[0].tolist() == [3.0, 5.0, 7.0]
    assert vjp_fn(X, X.sum())[0].tolist() == [3.0, 5.0, 7.0]


def test_inputs_that_do_not_matter_have_zero_gradients() -> None:
    assert vjp(lambda x, y: x * 2, X, X)[1](X)[1].tolist() == [0.0, 0.0, 0.0]
    assert vjp(lambda x: plugrad.ones(3), X)[1](X)[0].tolist() == [0.0, 0.0, 0.0]


def test_a_graph_outside_goes_on() -> None:
    x = plugrad.arange(3.0).requires_grad_()
    gradient = grad(cubes)(x)
    assert gradient.requires_grad
    gradient.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 12.0]
    with plugrad.no_grad():
        assert not grad(cubes)(x).requires_grad
    assert not grad(cubes)(X).requires_grad


def test_grad_mode_inside_counts_inside_only() -> None:
    def half(x: plugrad.Tensor) -> plugrad.Tensor:
        with plugrad.no_grad():
            constant = (x * x).sum()
        return (x * x).sum() + constant

    assert grad(half)(X).tolist() == [0.0, 2.0, 4.0]
    assert plugrad.is_grad_enabled()


def test_a_tensor_made_inside_may_be_written_to() -> None:
    assert grad(lambda x: plugrad.zeros(3).add_(x * x).sum())(X).tolist() == [0.0, 2.0, 4.0]

    def through_a_view(x: plugrad.Tensor) -> plugrad.Tensor:
        y = x.clone()
        y[0].mul_(5)
        return y.sum()

    assert grad(through_a_view)(X).tolist() == [5.0, 1.0, 1.0]


def test_a_tensor_that_got_out_goes_on_as_what_it_wraps() -> None:
    kept: list[plugrad.Tensor] = []
    grad(lambda x: (kept.append(x * 2), x.sum())[1])(X)
    assert (kept[0] + 1).tolist() == [1.0, 3.0, 5.0]


def test_autograd_grad_works_inside() -> None:
    def norm(x: plugrad.Tensor) -> plugrad.Tensor:
        return plugrad.autograd.grad((x * x).sum(), x, create_graph=True)[0].sum()

    assert grad(norm)(X).tolist() == [2.0, 2.0, 2.0]


CAPTURED = plugrad.ones(3)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: grad(lambda x: (CAPTURED.add_(1) * x).sum())(X),
        RuntimeError,
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
        "in-place operation (plugrad::add_.Scalar) that would mutate a captured Tensor.",
    ),
    (
        lambda: grad(lambda x: x.mul_(2).sum())(X.clone()),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    (
        lambda: grad(lambda x: x.requires_grad_().sum())(X),
        RuntimeError,
        "You are attempting to call Tensor.requires_grad_()",
    ),
    (
        lambda: grad(lambda x: (x.sum().backward(), x.sum())[1])(X),
        RuntimeError,
        "backward() called inside a plugrad.func transform.",
    ),
    (
        lambda: grad(lambda x: x)(X),
        RuntimeError,
        "Expected f(*args) to return a scalar Tensor, got tensor with 1 dims. Maybe you wanted to "
        "use the vjp or jacrev APIs instead?",
    ),
    (lambda: grad(lambda x: 3)(X), RuntimeError, "to return a Tensor, got <class 'int'>"),
    (
        lambda: grad(cubes, argnums=3)(X),
        RuntimeError,
        "Got argnum=3, but only 1 positional inputs",
    ),
    (
        lambda: grad(cubes, argnums="a")(X),  # type: ignore[arg-type]  # what is tested
        RuntimeError,
        "argnums must be int or Tuple[int, ...], got: <class 'str'>",
    ),
    (lambda: grad(cubes, argnums=())(X), RuntimeError, "argnums must be non-empty"),
    (
        lambda: grad(cubes, argnums=(0, 0))(X),
        RuntimeError,
        "argnums elements must be unique, got (0, 0)",
    ),
    (
        lambda: grad(cubes)(3),
        ValueError,
        "Thing passed to transform API must be Tensor, got <class 'int'>",
    ),
    (
        lambda: grad(lambda x: x.sum())(plugrad.arange(3)),
        RuntimeError,
        "only Tensors of floating point dtype can require gradients",
    ),
    (
        lambda: grad(cubes, has_aux=True)(X),
        RuntimeError,
        "output of function f should be a tuple: (output, aux) if has_aux is True",
    ),
    (
        lambda: grad(lambda x: (x.sum(), 3), has_aux=True)(X),
        RuntimeError,
        "Expected tensors, got unsupported type <class 'int'>",
    ),
    (
        lambda: vjp(lambda x: (x, x), X)[1](X),
        RuntimeError,
        "Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
        "the function. cotangents: *, primal output: (*, *)",
    ),
    (
        lambda: vjp(lambda x: 3, X),
        RuntimeError,
        "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type "
        "<class 'int'>",
    ),
    (
        lambda: vjp(lambda x: (), X),
        RuntimeError,
        "Expected f to be a function that has non-empty output (got output = [])",
    ),
    (
        lambda: vjp(lambda x: x * 2, X)[1](plugrad.ones(2)),
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of",
    ),
]


@pytest.mark.parametrize(("run", "error", "message"), ERRORS)
def test_errors(run: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run()
    assert CAPTURED.tolist() == [1.0, 1.0, 1.0]
