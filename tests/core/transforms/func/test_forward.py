"""`jvp`, `jacfwd`, `hessian` and `linearize`. Oracle: closed forms; PyTorch's words."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vmap
from tests.core.transforms.func.outcomes import outcome

X = plugrad.arange(3.0)
ONE = plugrad.tensor(1.0)


def test_products_have_the_form_of_the_outputs() -> None:
    outputs, products = jvp(lambda x, y: {"xy": x * y, "x": x}, (X, X + 1), (X, X * 0))
    assert outputs["xy"].tolist() == [0.0, 2.0, 6.0]
    assert products["xy"].tolist() == [0.0, 2.0, 6.0]
    assert products["x"].tolist() == [0.0, 1.0, 2.0]


def test_an_output_without_tangent_gets_zeros_or_is_refused() -> None:
    assert jvp(lambda x: plugrad.ones(2), (X,), (X,))[1].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="The output of f is independent of the inputs"):
        jvp(lambda x: plugrad.ones(2), (X,), (X,), strict=True)


def test_auxiliary_results_come_beside() -> None:
    _, product, aux = jvp(lambda x: (x * x, {"twice": x * 2}), (X,), (X,), has_aux=True)
    assert product.tolist() == [0.0, 2.0, 8.0]
    assert aux["twice"].tolist() == [0.0, 2.0, 4.0]


def test_forward_and_reverse_mode_nest() -> None:
    def cubes(x: plugrad.Tensor) -> plugrad.Tensor:
        return (x * x * x).sum()

    wanted = (6 * X * X).tolist()
    assert jvp(grad(cubes), (X,), (X,))[1].tolist() == wanted
    assert (
        jvp(lambda x: jvp(lambda y: y * y * y, (x,), (X,))[1], (X,), (plugrad.ones(3),))[1].tolist()
        == (6 * X * X).tolist()
    )
    found = grad(lambda x: jvp(lambda y: y * y * y, (x,), (plugrad.ones(3),))[1].sum())(X)
    assert found.tolist() == (6 * X).tolist()
    for matrix in (hessian(cubes), jacfwd(jacfwd(cubes)), jacrev(jacfwd(cubes))):
        assert matrix(X).tolist() == plugrad.diag(6 * X).tolist()
    assert vmap(hessian(cubes))(X[None])[0].tolist() == plugrad.diag(6 * X).tolist()


def test_perturbations_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y)) is 1, and not 2.
    def outer(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * jvp(lambda y: x + y, (ONE,), (ONE,))[1]

    assert jvp(outer, (ONE,), (ONE,))[1].item() == 1.0


def test_a_graph_outside_goes_on() -> None:
    x = plugrad.arange(3.0).requires_grad_()
    jvp(lambda x: x * x, (x,), (plugrad.ones(3),))[1].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_jacobians_by_columns() -> None:
    found = jacfwd(lambda x, y: (x * y, {"y": y}), argnums=(0, 1))(X, X + 1)
    assert found[0][0].tolist() == plugrad.diag(X + 1).tolist()
    assert found[0][1].tolist() == plugrad.diag(X).tolist()
    assert found[1]["y"][0].tolist() == plugrad.zeros(3, 3).tolist()
    assert found[1]["y"][1].tolist() == plugrad.eye(3).tolist()
    matrix, aux = jacfwd(lambda x: (x * x, x), has_aux=True)(X)
    assert matrix.tolist() == plugrad.diag(2 * X).tolist()
    assert aux.tolist() == X.tolist()


def test_writes_carry_tangents() -> None:
    def write(x: plugrad.Tensor) -> plugrad.Tensor:
        y = plugrad.zeros(3)
        y[1:] = x[1:] * x[1:]
        y[0].add_(x[2])
        return y

    assert jvp(write, (X,), (plugrad.ones(3),))[1].tolist() == [1.0, 2.0, 4.0]
    assert jacfwd(write)(X).tolist() == jacrev(write)(X).tolist()


def test_the_linear_function_runs_nothing_again() -> None:
    calls: list[int] = []

    def squares(x: plugrad.Tensor) -> plugrad.Tensor:
        calls.append(1)
        return x * x

    outputs, jvp_fn = linearize(squares, X)
    assert outputs.tolist() == [0.0, 1.0, 4.0]
    assert jvp_fn(X).tolist() == [0.0, 2.0, 8.0]
    assert vmap(jvp_fn)(plugrad.eye(3)).tolist() == plugrad.diag(2 * X).tolist()
    assert len(calls) == 1


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: jvp(lambda x: x, X, X),
        RuntimeError,
        "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to "
        "call f(*primals).",
    ),
    (
        lambda: jvp(lambda x: x, (X,), (X, X)),
        RuntimeError,
        "Expected primals and tangents to have the same python structure.",
    ),
    (
        lambda: jvp(lambda: 1, (), ()),
        RuntimeError,
        "Expected primals to contain at least one Tensor.",
    ),
    (
        lambda: jvp(lambda x: x * x, (X,), (plugrad.ones(2),)),
        RuntimeError,
        "Trying to set a forward gradient that has a different size than that of the original "
        "Tensor, this is not supported. Tensor is of size [3] while the given forward gradient is "
        "of size [2].",
    ),
    (
        lambda: jvp(lambda x: 3, (X,), (X,)),
        RuntimeError,
        "expected f(*primals) to return only tensors, got unsupported type <class 'int'>",
    ),
    (
        lambda: jvp(lambda x: x, (X,), (X,), has_aux=True),
        RuntimeError,
        "output of function f should be a tuple: (output, aux) if has_aux is True",
    ),
    (
        lambda: jacfwd(lambda x: x * x)(plugrad.arange(3)),
        ValueError,
        "Expected primal to be floating point or complex, but got: plugrad.int64",
    ),
    (
        lambda: jacfwd(lambda x: x, argnums=2)(X),
        RuntimeError,
        "Got argnum=2, but only 1 positional inputs",
    ),
    (
        lambda: linearize(lambda x: x * x, X)[1](X, X),
        RuntimeError,
        "to have the same argspec as the primals",
    ),
    (
        lambda: linearize(lambda x: x * x, X)[1](plugrad.ones(2)),
        RuntimeError,
        "in flattened pytree doesn't match the shape plugrad.Size([3]) of the corresponding "
        "primal.",
    ),
]


@pytest.mark.parametrize(("run", "error", "message"), ERRORS)
def test_errors(run: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run()
    assert jvp(lambda x: x * x, (X,), (X,))[1].tolist() == [0.0, 2.0, 8.0]


def test_forward_mode_that_is_off_outside_or_for_a_while(torch_oracle: ModuleType) -> None:
    def program(lib: Any) -> Any:
        fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
        func, x, v = lib.func, lib.tensor([2.0]), lib.tensor([1.0])

        def constant_factor(x: Any) -> Any:
            with fw._set_fwd_grad_enabled(False):
                y = x * x
            return x * y

        def off_around(x: Any) -> Any:
            with fw._set_fwd_grad_enabled(False):
                return func.jvp(lambda y: y**3 * x, (v,), (v,))

        def jvp(f: Any) -> Any:
            return func.jvp(f, (x,), (v,))

        with fw._set_fwd_grad_enabled(False):
            off = [jvp(lambda x: x**3), jvp(lambda x: jvp(lambda x: x**3)[1] * x)]
            off.append(func.hessian(lambda x: (x**3).sum())(x))
        return [
            off,
            jvp(off_around),
            jvp(constant_factor),
            jvp(lambda x: func.jvp(constant_factor, (x,), (v,))[1]),
        ]

    expected = outcome(torch_oracle, program)
    assert isinstance(expected, list)
    assert outcome(plugrad, program) == expected
    assert plugrad.autograd.forward_ad._is_fwd_grad_enabled()
