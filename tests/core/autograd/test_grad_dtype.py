"""Tensor.grad_dtype: the dtype of a leaf's gradient."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values) or [1.0, 2.0], dtype=lib.float64, requires_grad=True)


def outcome(lib: Any, call: Callable[[Any], Any]) -> Any:
    try:
        result = call(lib)
    except Exception as error:
        return type(error), str(error).replace(f"{lib.__name__}.", "")
    return str(result).replace(f"{lib.__name__}.", "")


def float_leaf_with_grad(lib: Any) -> Any:
    x = leaf(lib)
    x.sum().backward()
    return x


def default(lib: Any) -> Any:
    return leaf(lib).grad_dtype, lib.ones(1).grad_dtype


def gradients_are_cast(lib: Any) -> Any:
    x = leaf(lib)
    x.grad_dtype = lib.float32
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad.dtype))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return x.grad.dtype, x.grad.tolist(), seen, lib.autograd.grad(x.sum(), x)[0].dtype


def given_gradient_is_cast(lib: Any) -> Any:
    x = leaf(lib)
    x.grad_dtype = lib.float32
    x.backward(lib.ones(2, dtype=lib.float64))
    return x.grad.dtype


def set_after_the_graph(lib: Any) -> Any:
    x = leaf(lib)
    y = (x * 2).sum()
    x.grad_dtype = lib.float32
    y.backward()
    return x.grad.dtype


def any_dtype(lib: Any) -> Any:
    class Halve(lib.autograd.Function):  # type: ignore[misc]  # a class of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 0.5

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.float() * 0.5

    x = leaf(lib)
    x.grad_dtype = None
    Halve.apply(x).sum().backward()
    first = x.grad.dtype
    (x * 2).sum().backward()
    x.grad = lib.ones(2, dtype=lib.float16)
    return first, x.grad.dtype, x.grad_dtype


def metadata_tells_the_own_dtype(lib: Any) -> Any:
    x = leaf(lib)
    y = x * 2
    x.grad_dtype = lib.float32
    return y.grad_fn.next_functions[0][0]._input_metadata[0].dtype


def assigned_gradient_of_another_dtype(lib: Any) -> Any:
    leaf(lib).grad = lib.ones(2)


def assigned_gradient_of_that_dtype(lib: Any) -> Any:
    x = leaf(lib)
    x.grad_dtype = lib.float32
    x.grad = lib.ones(2)
    return x.grad.dtype


def set_beside_another_gradient(lib: Any) -> Any:
    float_leaf_with_grad(lib).grad_dtype = lib.float32


def set_beside_such_a_gradient(lib: Any) -> Any:
    x = float_leaf_with_grad(lib)
    x.grad_dtype = None
    x.grad_dtype = lib.float64
    return x.grad_dtype


def neither_dtype_nor_none(lib: Any) -> Any:
    leaf(lib).grad_dtype = "float32"


def read_of_a_result(lib: Any) -> Any:
    return (leaf(lib) * 2).grad_dtype


def set_of_a_result(lib: Any) -> Any:
    (leaf(lib) * 2).grad_dtype = lib.float32


def kept_in_place_but_not_copied(lib: Any) -> Any:
    x = leaf(lib)
    x.grad_dtype = lib.float32
    with lib.no_grad():
        x.mul_(2)
    return x.grad_dtype, x.detach().grad_dtype, x.detach_().grad_dtype


CALLS = [
    default,
    gradients_are_cast,
    given_gradient_is_cast,
    set_after_the_graph,
    any_dtype,
    metadata_tells_the_own_dtype,
    assigned_gradient_of_another_dtype,
    assigned_gradient_of_that_dtype,
    set_beside_another_gradient,
    set_beside_such_a_gradient,
    neither_dtype_nor_none,
    read_of_a_result,
    set_of_a_result,
    kept_in_place_but_not_copied,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_grad_dtype_does_what_it_does_in_pytorch(
    call: Callable[[Any], Any], torch_oracle: ModuleType
) -> None:
    assert outcome(plugrad, call) == outcome(torch_oracle, call)


def test_gradients_come_in_the_dtype_that_was_asked_for() -> None:
    x = leaf(plugrad)
    x.grad_dtype = plugrad.float32
    (x * x).sum().backward()
    assert x.grad.dtype is plugrad.float32
    assert x.grad.tolist() == [2.0, 4.0]
