"""`autograd.Function` under transforms. Oracle: the same in operators; PyTorch's words."""

from __future__ import annotations

import re
from typing import Any

import pytest

import plugrad
from plugrad.func import grad, jacrev, vjp, vmap

X = plugrad.tensor([1.0, 2.0, 3.0])
TWO = plugrad.tensor(2.0)


class Product(plugrad.autograd.Function):
    """x * y and x * 2, with tensors and a number kept for backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y, x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.factor = 2

    @staticmethod
    def backward(ctx: Any, of_product: Any, of_double: Any) -> Any:
        x, y = ctx.saved_tensors
        return of_product * y + of_double * ctx.factor, of_product * x


def in_operators(x: Any, y: Any) -> Any:
    return x * y, x * 2


def total(function: Any, x: Any, y: Any) -> Any:
    return sum((part * part).sum() for part in function(x, y))


TRANSFORMED = {
    "grad": lambda f: grad(lambda x, y: total(f, x, y), argnums=(0, 1))(X, X + 1),
    "grad of grad": lambda f: grad(
        lambda x: grad(lambda z: total(f, z, z))(x).sum(),
    )(X),
    "vmap": lambda f: vmap(f)(X, X + 1),
    "vmap of one": lambda f: vmap(f, in_dims=(0, None))(X, TWO),
    "vmap of grad": lambda f: vmap(
        grad(lambda x, y: total(f, x, y), argnums=(0, 1)), in_dims=(0, None)
    )(X, TWO),
    "grad of vmap": lambda f: grad(
        lambda y: sum(part.sum() for part in vmap(lambda x: f(x, y))(X))
    )(TWO),
    "vmap of vmap": lambda f: vmap(vmap(f, in_dims=(None, 0)), in_dims=(0, None))(X, X + 1),
    "vmap of grad of grad": lambda f: vmap(grad(grad(lambda x: total(f, x, x))))(X),
    "jacrev": lambda f: jacrev(lambda x: f(x, x))(X),
    "mapped cotangents": lambda f: vmap(vjp(lambda x: f(x, X)[0], X)[1])(plugrad.eye(3)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_function_is_transformed_as_its_operators(name: str) -> None:
    run = TRANSFORMED[name]
    plugrad.testing.assert_close(run(Product.apply), run(in_operators))


def test_its_own_rule_for_batches_is_called() -> None:
    told: list[Any] = []

    class Own(Product):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            told.append((info.batch_size, info.randomness, in_dims))
            return Product.apply(x, y), (0, 0)

    found = vmap(Own.apply, in_dims=(0, None))(X, TWO)
    assert told == [(3, "error", (0, None))]
    assert [item.tolist() for item in found] == [[2.0, 4.0, 6.0], [2.0, 4.0, 6.0]]


class WithContext(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class Neither(Product):
    generate_vmap_rule = False


class Both(Product):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        return Product.apply(x, y), (0, 0)


class NoDims(Neither):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        return x * y


class OtherDims(Neither):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        return (x * y, x * 2), (0, 0, 0)


ERRORS = [
    (
        lambda: grad(lambda x: WithContext.apply(x).sum())(X),
        "it must override the setup_context staticmethod",
    ),
    (
        lambda: vmap(Neither.apply)(X, X),
        "You tried to vmap over Neither, but it does not have vmap support. Please override and "
        "implement the vmap staticmethod or set generate_vmap_rule=True.",
    ),
    (
        lambda: vmap(Both.apply)(X, X),
        "You tried to vmap over Both, but it has both generate_vmap_rule=True and an overridden "
        "vmap staticmethod.",
    ),
    (
        lambda: vmap(NoDims.apply)(X, X),
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output.",
    ),
    (
        lambda: vmap(OtherDims.apply)(X, X),
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
        "tuple. Expected out_dims=(0, 0, 0) to be compatible with the structure of `output`",
    ),
]


@pytest.mark.parametrize(("run", "message"), ERRORS)
def test_errors(run: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        run()
