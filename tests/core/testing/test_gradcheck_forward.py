"""`gradcheck(check_forward_ad=True)`: what it finds, and its words; on plugrad and on PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module("plugrad")


def leaf(lib: Any, dtype: str = "float64") -> Any:
    values = [0.5, 1.5] if dtype == "float64" else [0.5 + 1j, 1.5 - 0.5j]
    return lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)


def doubled(lib: Any, factor: float) -> Any:
    class Double(lib.autograd.Function):  # type: ignore[misc, name-defined]  # of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return None if t is None else t * factor

    return Double.apply


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_right_tangents_pass(lib: Any, fast: bool, backward: bool) -> None:
    def function(x: Any, z: Any) -> Any:
        return x * z, x.sin(), (z * z).abs(), x.argmax()

    inputs = (leaf(lib), leaf(lib, "complex128"))
    assert lib.autograd.gradcheck(
        function,
        inputs,
        check_forward_ad=True,
        check_backward_ad=backward,
        fast_mode=fast,
        check_batched_forward_grad=True,
    )


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("dtype", "prefix"),
    [
        ("float64", ""),
        ("complex128", "While considering the imaginary part of complex inputs only, "),
    ],
)
def test_wrong_tangents_are_found(lib: Any, fast: bool, dtype: str, prefix: str) -> None:
    expected = f"^{prefix}Jacobian computed with forward mode mismatch for output 0 with respect to"
    with pytest.raises(RuntimeError, match=expected):
        lib.autograd.gradcheck(
            doubled(lib, 3.0), leaf(lib, dtype), check_forward_ad=True, fast_mode=fast
        )
    assert not lib.autograd.gradcheck(
        doubled(lib, 3.0), leaf(lib, dtype), check_forward_ad=True, raise_exception=False
    )
    assert lib.autograd.gradcheck(doubled(lib, 2.0), leaf(lib, dtype), check_forward_ad=True)


def test_missing_tangents_must_count_as_zero(lib: Any) -> None:
    class Product(lib.autograd.Function):  # type: ignore[misc, name-defined]  # of either library
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx: Any, x_t: Any, y_t: Any) -> Any:
            x, y = ctx.saved_tensors
            if x_t is None or y_t is None:
                return (x_t * y if y_t is None else x * y_t) * 2
            return x_t * y + x * y_t

    inputs = (leaf(lib), leaf(lib))
    with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index"):
        lib.autograd.gradcheck(
            Product.apply, inputs, check_forward_ad=True, check_backward_ad=False
        )


def test_forward_over_reverse(lib: Any) -> None:
    assert lib.autograd.gradgradcheck(
        lambda x: x.exp() * x, leaf(lib), check_fwd_over_rev=True, check_batched_grad=False
    )


def test_a_function_without_jvp_has_no_forward_mode(lib: Any) -> None:
    class Bare(lib.autograd.Function):  # type: ignore[misc, name-defined]  # of either library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    with pytest.raises(
        NotImplementedError, match=r"^You must implement the jvp function for custom"
    ):
        lib.autograd.gradcheck(Bare.apply, leaf(lib), check_forward_ad=True)
