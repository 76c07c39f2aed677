"""Autocast and user-defined operators: `register_autocast`, kernels, `custom_fwd`, `custom_bwd`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd import Function
from plugrad.library import Library, custom_op, register_autocast

X = plugrad.ones(2, 2)


@pytest.fixture
def total() -> Iterator[Any]:
    @custom_op("amp_test::total", mutates_args=())
    def total(x: plugrad.Tensor, weights: list[plugrad.Tensor]) -> plugrad.Tensor:
        out = x.sum(0)
        for weight in weights:
            out = out + weight
        return out

    yield total
    total._lib._destroy()


def test_inputs_are_cast_within_a_region_only(total: Any) -> None:
    assert total.register_autocast("cpu", plugrad.float16) is not None
    assert total(X, [X[0]]).dtype is plugrad.float32
    with plugrad.autocast("cpu"):
        assert total(X, [X[0]]).dtype is plugrad.float16
        assert total(X.double(), []).dtype is plugrad.float64
        with plugrad.autocast("cpu", enabled=False):
            assert total(X, []).dtype is plugrad.float32


def test_a_later_rule_counts(total: Any) -> None:
    total.register_autocast("cpu", plugrad.float16)
    register_autocast("amp_test::total", "cpu", plugrad.bfloat16)
    with plugrad.autocast("cpu"):
        assert total(X, []).dtype is plugrad.bfloat16


def test_gradients_go_through_the_casts(total: Any) -> None:
    total.register_autograd(lambda ctx, grad: (grad.expand(2, 2), []))
    total.register_autocast("cpu", plugrad.bfloat16)
    x = plugrad.ones(2, 2, requires_grad=True)
    with plugrad.autocast("cpu"):
        out = total(x, [])
    out.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x.grad.dtype is plugrad.float32


def test_nothing_autocasts_within_an_operator_that_has_a_rule() -> None:
    @custom_op("amp_test::square_of", mutates_args=())
    def square_of(x: plugrad.Tensor) -> plugrad.Tensor:
        return x @ x

    try:
        with plugrad.autocast("cpu"):
            assert square_of(X).dtype is plugrad.bfloat16
            square_of.register_autocast("cpu", plugrad.float32)
            assert square_of(X).dtype is plugrad.float32
    finally:
        square_of._lib._destroy()


def test_a_rule_goes_with_its_library() -> None:
    with Library("amp_test", "DEF") as lib:
        lib.define("same(Tensor x) -> Tensor")
        lib.impl("same", lambda x: x.clone(), "CompositeImplicitAutograd")
        with Library("amp_test", "IMPL") as rules:
            register_autocast("amp_test::same", "cpu", plugrad.float16, lib=rules)
            with plugrad.autocast("cpu"):
                assert plugrad.ops.amp_test.same(X).dtype is plugrad.float16
        with plugrad.autocast("cpu"):
            assert plugrad.ops.amp_test.same(X).dtype is plugrad.float32


def test_a_kernel_for_the_key_takes_the_lists_place() -> None:
    with Library("plugrad", "IMPL") as lib:
        lib.impl("relu", lambda x: x.half(), "AutocastCPU")
        with plugrad.autocast("cpu"):
            assert plugrad.relu(X).dtype is plugrad.float16
        assert plugrad.relu(X).dtype is plugrad.float32


@pytest.mark.parametrize(
    ("device_type", "words"),
    [(3, "Expected `device_type` of type `str`"), ("meta", "'meta' does not support autocast")],
)
def test_rules_are_for_devices_that_autocast(total: Any, device_type: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        total.register_autocast(device_type, plugrad.float16)


def product(cast_inputs: Any) -> Any:
    """A product that records the state and the dtypes in forward and backward."""

    class Product(Function):
        seen: list[Any] = []  # noqa: RUF012

        @staticmethod
        @plugrad.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            Product.seen.append((plugrad.is_autocast_enabled("cpu"), a.dtype))
            return a @ b

        @staticmethod
        @plugrad.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            Product.seen.append(
                (plugrad.is_autocast_enabled("cpu"), plugrad.get_autocast_dtype("cpu"))
            )
            return grad @ b.t(), a.t() @ grad

    return Product


def test_backward_autocasts_as_forward_did() -> None:
    function = product(None)
    x = plugrad.ones(2, 2, requires_grad=True)
    with plugrad.autocast("cpu", plugrad.float16):
        out = function.apply(x, X)
    assert out.dtype is plugrad.float16
    out.sum().backward()
    assert function.seen == [(True, plugrad.float32), (True, plugrad.float16)]
    assert not plugrad.is_autocast_enabled("cpu")


def test_backward_does_not_autocast_if_forward_did_not() -> None:
    function = product(None)
    x = plugrad.ones(2, 2, requires_grad=True)
    out = function.apply(x, X)
    with plugrad.autocast("cpu"):
        out.sum().backward()
    assert [state for state, _ in function.seen] == [False, False]


def test_inputs_of_a_function_are_cast_and_nothing_within() -> None:
    function = product(plugrad.float32)
    x = plugrad.ones(2, 2, requires_grad=True)
    with plugrad.autocast("cpu"):
        out = function.apply(x.bfloat16(), X)
    assert out.dtype is plugrad.float32
    out.sum().backward()
    assert function.seen == [(False, plugrad.float32), (False, plugrad.bfloat16)]
    assert function.apply(x.double(), X.double()).dtype is plugrad.float64


@pytest.mark.parametrize("decorator", [plugrad.amp.custom_fwd, plugrad.amp.custom_bwd])
def test_decorators_want_a_device_type(decorator: Any) -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got"):
        decorator(device_type=3)
