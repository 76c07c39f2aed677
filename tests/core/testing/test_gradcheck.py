"""gradcheck and gradgradcheck accept right gradients and catch wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.testing import GradcheckError, gradcheck, gradgradcheck

MODES = pytest.mark.parametrize("fast_mode", [False, True])


def leaf(*values: Any, dtype: Any = None) -> Any:
    return plugrad.tensor(list(values), dtype=dtype or plugrad.float64, requires_grad=True)


def function(forward: Any, backward: Any) -> Any:
    """A Function with this forward and backward, and the input saved."""

    def saving_forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return forward(x)

    def with_input(ctx: Any, *grads: Any) -> Any:
        return backward(ctx.saved_tensors[0], *grads)

    body = {"forward": staticmethod(saving_forward), "backward": staticmethod(with_input)}
    return type("F", (plugrad.autograd.Function,), body).apply


@MODES
def test_a_right_gradient_passes(fast_mode: bool) -> None:
    assert gradcheck(
        lambda x, y: x * y.exp(), (leaf(1.0, 2.0), leaf(0.5, 0.1)), fast_mode=fast_mode
    )


@MODES
def test_a_wrong_gradient_is_caught(fast_mode: bool) -> None:
    wrong = function(lambda x: x * x, lambda x, g: g * x)
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(wrong, leaf(1.0, 2.0), fast_mode=fast_mode)
    assert not gradcheck(wrong, leaf(1.0, 2.0), fast_mode=fast_mode, raise_exception=False)


@MODES
def test_a_missing_gradient_is_caught(fast_mode: bool) -> None:
    wrong = function(lambda x: x * x, lambda x, g: None)
    with pytest.raises(GradcheckError):
        gradcheck(wrong, leaf(1.0, 2.0), fast_mode=fast_mode)


def test_the_message_shows_both_jacobians() -> None:
    wrong = function(lambda x: x * 2, lambda x, g: g * plugrad.tensor([2.0, 5.0]).to(g.dtype))
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong, leaf(1.0, 2.0))
    text = str(caught.value)
    assert "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 2.0000]]" in text
    assert "analytical:tensor([[2., 0.],\n        [0., 5.]]" in text


@MODES
def test_several_inputs_and_outputs(fast_mode: bool) -> None:
    def f(x: Any, number: float, y: Any) -> Any:
        return x * y * number, (x + y).sum(), x.detach()

    assert gradcheck(f, (leaf(1.0, 2.0), 3.0, leaf(0.5, 0.1)), fast_mode=fast_mode)


@MODES
def test_the_wrong_one_of_several_is_named(fast_mode: bool) -> None:
    wrong = function(lambda x: x * x, lambda x, g: g * x)
    with pytest.raises(GradcheckError, match="output 1 with respect to input 1"):
        gradcheck(
            lambda x, y: (x * y, wrong(y)), (leaf(1.0, 2.0), leaf(0.5, 0.1)), fast_mode=fast_mode
        )


def test_one_tensor_in_two_places() -> None:
    x = leaf(1.0, 2.0)
    assert gradcheck(lambda a, b: a * b, (x, x))


@MODES
@pytest.mark.parametrize(
    "f",
    [
        lambda z: z * z,
        lambda z: z.conj() * 2,
        lambda z: z.real * z.imag,
        lambda z: z.abs(),
        lambda z: z.exp(),
    ],
)
def test_complex_functions(f: Any, fast_mode: bool) -> None:
    assert gradcheck(f, leaf(1 + 2j, 0.5 - 1j, dtype=plugrad.complex128), fast_mode=fast_mode)


def test_real_to_complex() -> None:
    assert gradcheck(lambda x: x * (1 + 2j), leaf(1.0, 2.0))


def test_a_forgotten_conjugate_is_caught() -> None:
    wrong = function(lambda z: z * z, lambda z, g: g * 2 * z)
    with pytest.raises(GradcheckError, match="the imaginary part of complex outputs only"):
        gradcheck(wrong, leaf(1 + 2j, dtype=plugrad.complex128))


def test_empty_inputs_pass() -> None:
    x = plugrad.zeros(0, 3, dtype=plugrad.float64, requires_grad=True)
    assert gradcheck(lambda x: x * 2, x)
    assert gradcheck(lambda x: x.sum(), x)


def test_no_input_requires_grad() -> None:
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x, plugrad.ones(1, dtype=plugrad.float64))


def test_low_precision_is_warned_about() -> None:
    x = plugrad.tensor([1.0], requires_grad=True)
    with pytest.warns(
        UserWarning, match="Input #0 requires gradient and is not a double precision"
    ):
        gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


def test_a_function_that_loses_the_gradient_is_caught() -> None:
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(1.0))
    assert gradcheck(lambda x: x.detach() * 0, leaf(1.0))


def test_random_backward_is_caught() -> None:
    state = [0.0]

    def backward(x: Any, g: Any) -> Any:
        state[0] += 1e-9
        return g * (2 + state[0])

    wobbly = function(lambda x: x * 2, backward)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(wobbly, leaf(1.0))
    assert gradcheck(wobbly, leaf(1.0), nondet_tol=1e-6)


def test_undefined_gradients_must_count_as_zero() -> None:
    def backward(x: Any, a: Any, b: Any) -> Any:
        return a * 2 + b * 3 + 1 if b is not None and b.abs().sum().item() == 0 else a * 2 + b * 3

    wrong = function(lambda x: (x * 2, x * 3), backward)
    with pytest.raises(GradcheckError):
        gradcheck(wrong, leaf(1.0))


def test_grad_dtypes_are_checked_on_request() -> None:
    assert gradcheck(lambda x: x * 2, leaf(1.0), check_grad_dtypes=True)


@MODES
def test_second_derivatives(fast_mode: bool) -> None:
    x, y = leaf(0.5, 1.0), leaf(2.0, 3.0)
    assert gradgradcheck(lambda x, y: x.sin() * y * y, (x, y), fast_mode=fast_mode)


@MODES
def test_a_wrong_second_derivative_is_caught(fast_mode: bool) -> None:
    wrong = function(lambda x: x**3, lambda x, g: g * 3 * (x * x.detach()))
    assert gradcheck(wrong, leaf(0.5, 1.0))
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong, leaf(0.5, 1.0), fast_mode=fast_mode)


def test_given_grad_outputs() -> None:
    assert gradgradcheck(lambda x: x.exp(), leaf(0.5, 1.0), leaf(1.0, 2.0))


def test_non_contiguous_grad_outputs() -> None:
    assert gradgradcheck(lambda x: x.exp(), leaf(0.5, 1.0), gen_non_contig_grad_outputs=True)


def test_linear_functions_have_second_derivatives_too() -> None:
    assert gradgradcheck(lambda x: x * 3, leaf(0.5, 1.0))


def test_complex_second_derivatives() -> None:
    assert gradgradcheck(lambda z: z * z, leaf(1 + 2j, dtype=plugrad.complex128))
