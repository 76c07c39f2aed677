"""What autograd.functional refuses, with PyTorch's words; run on plugrad and on PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

ALL = ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"]
PRODUCTS = ["vjp", "jvp", "vhp", "hvp"]
SCALAR = ["hessian", "vhp", "hvp"]


def call(lib: Any, name: str, function: Callable[..., Any], inputs: Any, **options: Any) -> Any:
    return getattr(lib.autograd.functional, name)(function, inputs, **options)


def total(*tensors: Any) -> Any:
    return sum(tensor.sum() for tensor in tensors) ** 2


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [[1.0], 1.0, None])
def test_inputs_must_be_tensors(lib: Any, name: str, value: Any) -> None:
    with pytest.raises(
        TypeError,
        match=f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the "
        f"given inputs has type {type(value)}",
    ):
        call(lib, name, total, value)
    with pytest.raises(TypeError, match=f"but the value at index 1 has type {type(value)}"):
        call(lib, name, total, (lib.ones(1), value))


@pytest.mark.parametrize("name", ALL)
def test_outputs_must_be_tensors(lib: Any, name: str) -> None:
    with pytest.raises(
        TypeError,
        match=f"The outputs of the user-provided function given to {name} must be either a Tensor "
        "or a tuple of Tensors but the given outputs of the user-provided function has type <class "
        "'float'>",
    ):
        call(lib, name, lambda x: 5.0, lib.ones(1))
    with pytest.raises(TypeError, match="but the value at index 0 has type <class 'float'>"):
        call(lib, name, lambda x: (5.0, x), lib.ones(1))


@pytest.mark.parametrize("name", PRODUCTS)
def test_vectors_must_be_tensors(lib: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"The v given to {name} must be either a Tensor or a tup"):
        call(lib, name, total, lib.ones(1), v=1.0)


@pytest.mark.parametrize("name", PRODUCTS)
def test_vectors_must_fit(lib: Any, name: str) -> None:
    x = lib.ones(3)

    def function(*tensors: Any) -> Any:
        return tensors if name == "vjp" else total(*tensors)

    with pytest.raises(
        RuntimeError, match=r"^Entry 0 in v has invalid size: should be .*3.* but got .*2"
    ):
        call(lib, name, function, (x,), v=lib.ones(2))
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
        call(lib, name, function, (x, x), v=x)
    if name != "vjp":
        with pytest.raises(RuntimeError, match=r"^v has invalid size: should be .*3.* but got .*2"):
            call(lib, name, function, x, v=lib.ones(2))
        with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
            call(lib, name, function, x, v=(x, x))


@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp"])
def test_a_vector_is_needed_for_several_input_elements(lib: Any, name: str) -> None:
    for inputs in (lib.ones(2), (lib.ones(1), lib.ones(1))):
        with pytest.raises(
            RuntimeError,
            match="The vector v can only be None if the input to the user-provided function is a "
            "single Tensor with a single element",
        ):
            call(lib, name, total, inputs)


def test_a_vector_is_needed_for_several_output_elements(lib: Any) -> None:
    for function in (lambda x: x * 2, lambda x: (x.sum(), x.sum())):
        with pytest.raises(
            RuntimeError,
            match="The vector v can only be None if the user-provided function returns a single "
            "Tensor with a single element",
        ):
            call(lib, "vjp", function, lib.ones(2))


@pytest.mark.parametrize("name", SCALAR)
def test_the_function_must_return_one_element(lib: Any, name: str) -> None:
    with pytest.raises(
        RuntimeError, match=f"The function given to {name} should return a single Tensor"
    ):
        call(lib, name, lambda x: (x.sum(),), lib.ones(1))
    with pytest.raises(
        RuntimeError,
        match=f"The Tensor returned by the function given to {name} should contain a single elem",
    ):
        call(lib, name, lambda x: x.expand(2), lib.ones(1))


def strict(lib: Any, name: str, function: Callable[..., Any], **options: Any) -> Any:
    return call(lib, name, function, lib.ones(1), strict=True, **options)


@pytest.mark.parametrize("name", ALL)
def test_strict_outputs_must_require_grad(lib: Any, name: str) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"Output 0 of the user-provided function does not require gradients. The outputs "
        "must be computed in a differentiable manner from the input when running in strict mode",
    ):
        strict(lib, name, lambda x: x.detach())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vjp", "The output of the user-provided function is independent of input 0."),
        ("jvp", "The output of the user-provided function is independent of input 0."),
        ("jacobian", "Output 0 of the user-provided function is independent of input 0."),
        ("hessian", "found that the jacobian of the user-provided function with respect to input"),
        ("vhp", "The output of the user-provided function is independent of input 0."),
        ("hvp", "The output of the user-provided function is independent of input 0."),
    ],
)
def test_strict_outputs_must_depend_on_inputs(lib: Any, name: str, message: str) -> None:
    other = lib.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        strict(lib, name, lambda x: other * 2)


@pytest.mark.parametrize("name", ["vjp", "jacobian"])
def test_strict_jacobians_must_be_differentiable(lib: Any, name: str) -> None:
    assert strict(lib, name, lambda x: x.exp(), create_graph=True)
    with pytest.raises(
        RuntimeError,
        match=r"The jacobian of the user-provided function is independent of input 0. This is not "
        "allowed in strict mode when create_graph=True",
    ):
        strict(lib, name, lambda x: x.clone(), create_graph=True)


def test_strict_jvp_of_a_function_whose_gradient_is_constant(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"The jacobian of the user-provided function is independent of input 0. This is not "
        "allowed in strict mode when create_graph=True",
    ):
        strict(lib, "jvp", lambda x: x.clone(), create_graph=True)


@pytest.mark.parametrize("name", SCALAR)
def test_strict_hessians_of_linear_functions(lib: Any, name: str) -> None:
    with pytest.raises(
        RuntimeError,
        match="While computing the hessian, found that the jacobian of the user-provided function "
        "with respect to input 0 is independent of the input",
    ):
        strict(lib, name, lambda x: (x * 3).sum())


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_strict_hessians_must_be_differentiable(lib: Any, name: str) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"The hessian of the user-provided function is independent of input 0. This is not "
        "allowed in strict mode when create_graph=True",
    ):
        strict(lib, name, lambda x: (x * x).sum(), create_graph=True)


def test_strategies(lib: Any) -> None:
    x = lib.ones(2)
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        call(lib, "jacobian", total, x, strategy="sideways")
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        call(lib, "hessian", total, x, outer_jacobian_strategy="sideways")
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        call(lib, "jacobian", total, x, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match='`create_graph=True` and `strategy="forward'):
        call(lib, "jacobian", total, x, strategy="forward-mode", create_graph=True)
    with pytest.raises(RuntimeError, match='`strict=True` and `strategy="forward-mode"` are not'):
        call(lib, "jacobian", total, x, strategy="forward-mode", strict=True, vectorize=True)
    with pytest.raises(RuntimeError, match="`strict=True` and `vectorized=True` are not supported"):
        call(lib, "jacobian", total, x, strict=True, vectorize=True)
