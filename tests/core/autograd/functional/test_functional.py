"""autograd.functional: values, forms and graphs of what it returns; run on plugrad and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ROWS = [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]
OUTER = [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}]


def point(lib: Any, *values: float, requires_grad: bool = False) -> Any:
    return lib.tensor(values or (1.0, 2.0), dtype=lib.float64, requires_grad=requires_grad)


def nested(value: Any) -> Any:
    """Tensors as lists, tuples of them as tuples."""
    if isinstance(value, (tuple, list)):
        return tuple(nested(item) for item in value)
    return value.tolist()


def square(x: Any) -> Any:
    return x * x


def cubes(x: Any) -> Any:
    return (x**3).sum()


def mixed(x: Any, y: Any) -> Any:
    """A vector and a scalar of two vectors."""
    return x * y, (x * x * y).sum()


def scalar(x: Any, y: Any) -> Any:
    return (x * x * y).sum()


def test_vjp(lib: Any) -> None:
    output, product = lib.autograd.functional.vjp(square, point(lib), point(lib, 3.0, 4.0))
    assert nested((output, product)) == ([1.0, 4.0], [6.0, 16.0])


def test_vjp_of_several_outputs_and_inputs(lib: Any) -> None:
    x, y = point(lib), point(lib, 3.0, 4.0)
    v = (point(lib, 1.0, 1.0), lib.tensor(2.0, dtype=lib.float64))
    outputs, product = lib.autograd.functional.vjp(mixed, (x, y), v)
    assert nested(outputs) == ([3.0, 8.0], 19.0)
    assert nested(product) == ([15.0, 36.0], [3.0, 10.0])


def test_vjp_needs_no_vector_for_one_element(lib: Any) -> None:
    output, product = lib.autograd.functional.vjp(cubes, point(lib))
    assert nested((output, product)) == (9.0, [3.0, 12.0])


def test_jvp(lib: Any) -> None:
    output, product = lib.autograd.functional.jvp(square, point(lib), point(lib, 3.0, 4.0))
    assert nested((output, product)) == ([1.0, 4.0], [6.0, 16.0])


def test_jvp_of_several_outputs_and_inputs(lib: Any) -> None:
    x, y = point(lib), point(lib, 3.0, 4.0)
    v = (point(lib, 1.0, 0.0), point(lib, 0.0, 1.0))
    outputs, product = lib.autograd.functional.jvp(mixed, (x, y), v)
    assert nested(outputs) == ([3.0, 8.0], 19.0)
    assert nested(product) == ([3.0, 2.0], 10.0)


def test_jvp_needs_no_vector_for_one_element(lib: Any) -> None:
    _, product = lib.autograd.functional.jvp(lambda x: x * point(lib), point(lib, 5.0))
    assert nested(product) == [1.0, 2.0]


@pytest.mark.parametrize("options", ROWS)
def test_jacobian(lib: Any, options: Any) -> None:
    matrix = lib.autograd.functional.jacobian(lambda x: x * x.sum(), point(lib), **options)
    assert nested(matrix) == [[4.0, 1.0], [2.0, 5.0]]


@pytest.mark.parametrize("options", ROWS)
def test_jacobian_of_several_outputs_and_inputs(lib: Any, options: Any) -> None:
    x, y = point(lib), point(lib, 3.0, 4.0)
    matrices = lib.autograd.functional.jacobian(mixed, (x, y), **options)
    assert nested(matrices) == (
        ([[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]),
        ([6.0, 16.0], [1.0, 4.0]),
    )


@pytest.mark.parametrize("options", ROWS)
def test_tuples_of_one_stay_tuples(lib: Any, options: Any) -> None:
    x, unit = point(lib), [[1.0, 0.0], [0.0, 1.0]]
    jacobian = lib.autograd.functional.jacobian
    assert nested(jacobian(lambda x: x * 1, (x,), **options)) == (unit,)
    assert nested(jacobian(lambda x: (x * 1,), x, **options)) == (unit,)
    assert nested(jacobian(lambda x: (x * 1,), (x,), **options)) == ((unit,),)


@pytest.mark.parametrize("options", ROWS)
def test_jacobian_has_the_shape_of_output_and_input(lib: Any, options: Any) -> None:
    x = lib.arange(6.0).reshape(2, 3)
    matrix = lib.autograd.functional.jacobian(lambda x: (x * x).sum(1), x, **options)
    assert matrix.shape == (2, 2, 3)
    assert nested(matrix[0]) == [[0.0, 2.0, 4.0], [0.0, 0.0, 0.0]]
    scalars = lib.autograd.functional.jacobian(lambda x: x * 3, lib.tensor(2.0), **options)
    assert nested(scalars) == 3.0


@pytest.mark.parametrize("options", ROWS)
def test_jacobian_of_outputs_that_do_not_depend_on_inputs_is_zero(lib: Any, options: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return x * 2, lib.ones(1)

    matrices = lib.autograd.functional.jacobian(function, (lib.ones(1), lib.ones(2)), **options)
    assert nested(matrices) == (([[2.0]], [[0.0, 0.0]]), ([[0.0]], [[0.0, 0.0]]))


def test_the_dtype_is_that_of_the_input_or_going_forward_of_the_output(lib: Any) -> None:
    x = lib.ones(2)
    for options, dtype in zip(ROWS, (lib.float32, lib.float32, lib.float64), strict=True):
        matrix = lib.autograd.functional.jacobian(lambda x: x.double(), x, **options)
        assert matrix.dtype is dtype


@pytest.mark.parametrize("options", OUTER)
def test_hessian(lib: Any, options: Any) -> None:
    matrix = lib.autograd.functional.hessian(cubes, point(lib), **options)
    assert nested(matrix) == [[6.0, 0.0], [0.0, 12.0]]


@pytest.mark.parametrize("options", OUTER)
def test_hessian_of_several_inputs(lib: Any, options: Any) -> None:
    x, y = point(lib), point(lib, 3.0, 4.0)
    matrices = lib.autograd.functional.hessian(scalar, (x, y), **options)
    assert nested(matrices) == (
        ([[6.0, 0.0], [0.0, 8.0]], [[2.0, 0.0], [0.0, 4.0]]),
        ([[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]),
    )


def test_hessian_accepts_one_element_of_any_shape(lib: Any) -> None:
    matrix = lib.autograd.functional.hessian(lambda x: x.reshape(1, 1) ** 2, point(lib, 3.0))
    assert nested(matrix) == [[2.0]]


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_products_with_the_hessian(lib: Any, name: str) -> None:
    product_with = getattr(lib.autograd.functional, name)
    output, product = product_with(cubes, point(lib), point(lib, 1.0, -1.0))
    assert nested((output, product)) == (9.0, [6.0, -12.0])
    x, y = point(lib), point(lib, 3.0, 4.0)
    v = (point(lib, 1.0, 0.0), point(lib, 0.0, 1.0))
    output, product = product_with(scalar, (x, y), v)
    assert nested((output, product)) == (19.0, ([6.0, 4.0], [2.0, 0.0]))
    _, product = product_with(cubes, point(lib, 2.0))
    assert nested(product) == [12.0]


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_products_with_the_hessian_of_a_linear_function_are_zero(lib: Any, name: str) -> None:
    product_with = getattr(lib.autograd.functional, name)
    _, product = product_with(lambda x: (x * 3).sum(), point(lib), point(lib))
    assert nested(product) == [0.0, 0.0]


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vjp": lambda f, x, v: f.vjp(square, x, v),
    "jvp": lambda f, x, v: f.jvp(square, x, v),
    "jacobian": lambda f, x, v: f.jacobian(square, x),
    "jacobian at once": lambda f, x, v: f.jacobian(square, x, vectorize=True),
    "hessian": lambda f, x, v: f.hessian(cubes, x),
    "hessian at once": lambda f, x, v: f.hessian(cubes, x, vectorize=True),
    "vhp": lambda f, x, v: f.vhp(cubes, x, v),
    "hvp": lambda f, x, v: f.hvp(cubes, x, v),
}
WITH_GRAPH: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vjp": lambda f, x, v: f.vjp(square, x, v, create_graph=True),
    "jvp": lambda f, x, v: f.jvp(square, x, v, create_graph=True),
    "jacobian": lambda f, x, v: f.jacobian(square, x, create_graph=True),
    "jacobian at once": lambda f, x, v: f.jacobian(square, x, create_graph=True, vectorize=True),
    "hessian": lambda f, x, v: f.hessian(cubes, x, create_graph=True),
    "hessian at once": lambda f, x, v: f.hessian(cubes, x, create_graph=True, vectorize=True),
    "vhp": lambda f, x, v: f.vhp(cubes, x, v, create_graph=True),
    "hvp": lambda f, x, v: f.hvp(cubes, x, v, create_graph=True),
}


def tensors(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_results_are_outside_the_graph(lib: Any, name: str, requires_grad: bool) -> None:
    x = point(lib, requires_grad=requires_grad)
    v = point(lib, 3.0, 4.0, requires_grad=requires_grad)
    for result in tensors(CALLS[name](lib.autograd.functional, x, v)):
        assert not result.requires_grad
        assert result.grad_fn is None
    assert x.requires_grad is requires_grad
    assert x.grad is None


@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_same_under_no_grad(lib: Any, name: str) -> None:
    x, v = point(lib), point(lib, 3.0, 4.0)
    expected = nested(CALLS[name](lib.autograd.functional, x, v))
    with lib.no_grad():
        assert nested(CALLS[name](lib.autograd.functional, x, v)) == expected
        assert nested(WITH_GRAPH[name](lib.autograd.functional, x, v)) == expected
        assert not lib.is_grad_enabled()


@pytest.mark.parametrize("name", WITH_GRAPH)
def test_results_can_be_differentiated(lib: Any, name: str) -> None:
    def call(x: Any, v: Any) -> Any:
        return sum(
            result.sum() for result in tensors(WITH_GRAPH[name](lib.autograd.functional, x, v))
        )

    inputs = (point(lib, requires_grad=True), point(lib, 3.0, 4.0, requires_grad=True))
    if "jacobian" in name or "hessian" in name:
        assert lib.autograd.gradcheck(lambda x: call(x, inputs[1]), inputs[:1])
    else:
        assert lib.autograd.gradcheck(call, inputs)


def test_the_function_may_use_the_inputs_directly(lib: Any) -> None:
    """They are constants to it, other than what it is called with."""
    x = point(lib, requires_grad=True)
    matrix = lib.autograd.functional.jacobian(lambda y: y * x, x)
    assert nested(matrix) == [[1.0, 0.0], [0.0, 2.0]]


def test_the_function_is_called_once_with_tensors_that_require_grad(lib: Any) -> None:
    calls: list[Any] = []

    def function(x: Any) -> Any:
        calls.append((x.requires_grad, x.is_leaf, lib.is_grad_enabled()))
        return x * 2

    with lib.no_grad():
        lib.autograd.functional.jacobian(function, point(lib))
    assert calls == [(True, True, True)]


def test_hvp_of_a_constant_is_zero(lib: Any) -> None:
    x = lib.ones(2)
    _, product = lib.autograd.functional.hvp(lambda a: a.detach().sum(), x, lib.ones(2))
    assert product.tolist() == [0.0, 0.0]


def test_unit_vectors_of_several_tensors(lib: Any) -> None:
    tensors = (lib.ones(2), lib.ones((), dtype=lib.float64))
    build = lib.autograd.functional._construct_standard_basis_for
    first, second = build(tensors, (2, 1))
    assert first.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert second.tolist() == [[0.0], [0.0], [1.0]]
    assert second.dtype == lib.float64
