"""The options of gradcheck and gradgradcheck, each by a function that only it finds fault with."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.testing import GradcheckError, gradcheck, gradgradcheck

MODES = pytest.mark.parametrize("fast_mode", [False, True])


def leaf(*values: Any, dtype: Any = None) -> Any:
    return plugrad.tensor(list(values), dtype=dtype or plugrad.float64, requires_grad=True)


def hooked(hook: Any) -> Any:
    """The identity; its gradient goes through a hook."""

    def function(x: Any) -> Any:
        y = x.clone()
        y.register_hook(hook)
        return y

    return function


class Batchless(plugrad.autograd.Function):
    """Twice the input; its backward gives something else in every call but the first few."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        Batchless.calls += 1
        return grads[0] * (2.0 if Batchless.calls <= 6 else 2.1)


@MODES
def test_atol_and_rtol(fast_mode: bool) -> None:
    off = hooked(lambda grad: grad * 1.01)
    options: Any = {"fast_mode": fast_mode, "check_undefined_grad": False}
    assert not gradcheck(off, leaf(1.0), raise_exception=False, **options)
    assert gradcheck(off, leaf(1.0), rtol=0.02, **options)
    assert gradcheck(off, leaf(1.0), atol=0.02, **options)


def test_eps_is_the_step() -> None:
    # A step over the kink at zero meets both slopes.
    assert gradcheck(plugrad.abs, leaf(1e-3))
    assert not gradcheck(plugrad.abs, leaf(1e-3), eps=1e-2, raise_exception=False)


@MODES
def test_other_errors_are_raised_whatever_raise_exception_says(fast_mode: bool) -> None:
    def fails(x: Any) -> Any:
        raise RuntimeError("Not a gradcheck error")

    with pytest.raises(RuntimeError, match="Not a gradcheck error"):
        gradcheck(fails, leaf(1.0), fast_mode=fast_mode, raise_exception=False)


@MODES
def test_backward_has_to_multiply_by_the_gradient(fast_mode: bool) -> None:
    off = hooked(lambda grad: grad + 1e-2)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(off, leaf(1.0), atol=1e-1, fast_mode=fast_mode)
    tiny = hooked(lambda grad: grad + 1e-9)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(tiny, leaf(1.0), fast_mode=fast_mode)
    assert gradcheck(tiny, leaf(1.0), fast_mode=fast_mode, masked=True, check_undefined_grad=False)


def test_undefined_gradients_have_to_be_handled() -> None:
    class Refusing(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if grads[0] is None:
                raise RuntimeError("x is undefined")
            return grads[0] * 2

    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking"),
        pytest.raises(GradcheckError, match="Expected backward function to handle undefined"),
    ):
        gradcheck(Refusing.apply, leaf(1.0))
    assert gradcheck(Refusing.apply, leaf(1.0), check_undefined_grad=False)


def test_undefined_gradients_have_to_count_as_zero() -> None:
    class Inventing(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if grads[0] is None:
                return plugrad.ones(1, dtype=plugrad.float64)
            return grads[0] * 2 + (0 if grads[1] is None else grads[1] * 3)

    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking"),
        pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"),
    ):
        gradcheck(lambda x: Inventing.apply(x), leaf(1.0), nondet_tol=10.0, atol=10.0)


def test_batched_gradients_agree_with_single_ones() -> None:
    inputs = (leaf(1.0, 2.0), leaf(0.5, 1.0))
    assert gradcheck(lambda x, y: (x * y, y.exp()), inputs, check_batched_grad=True)
    z = leaf(1 + 2j, dtype=plugrad.complex128)
    assert gradcheck(lambda z: z * z, z, check_batched_grad=True)
    assert gradgradcheck(lambda x: x.exp(), leaf(0.5, 1.0), check_batched_grad=True)


def test_batched_gradients_that_differ_are_caught() -> None:
    Batchless.calls = 0
    assert gradcheck(Batchless.apply, leaf(1.0), check_undefined_grad=False)
    # Two passes for the Jacobian, two one by one; then the batch's passes are another's.
    Batchless.calls = 2
    with pytest.raises(GradcheckError, match=r"For output 0 and input 0:\n\n.*batched gradient"):
        gradcheck(Batchless.apply, leaf(1.0), check_batched_grad=True)


def test_a_batch_that_fails_is_reported() -> None:
    calls = []

    class Failing(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            calls.append(grads[0])
            if len(calls) > 4:
                raise RuntimeError("no more")
            return grads[0] * 2

    with pytest.raises(GradcheckError, match="While computing batched gradients, got: no more"):
        gradcheck(Failing.apply, leaf(1.0), check_batched_grad=True)


@MODES
def test_fast_and_slow_messages(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(hooked(lambda grad: grad + 1e-2), leaf(1.0, 2.0), fast_mode=fast_mode)
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:")
    assert "\nanalytical:tensor(" in text
    assert ("we recompute numerical and analytical jacobians in slow mode" in text) == fast_mode
    assert ("The max per-element difference (slow mode) is: 0.0" in text) == fast_mode


def test_fast_mode_says_that_slow_mode_would_pass() -> None:
    # Within rtol of each element, but not of their sum, in which they cancel one another.
    signs = plugrad.tensor([1e3, -1e3] * 10, dtype=plugrad.float64)
    x = plugrad.ones(20, dtype=plugrad.float64, requires_grad=True)
    off = hooked(lambda grad: grad + 0.9e-3 * grad.abs())
    assert gradcheck(lambda x: off(x) * signs, x, check_undefined_grad=False)
    message = "Fast gradcheck failed but element-wise differences are small"
    with pytest.raises(GradcheckError, match=message):
        gradcheck(lambda x: off(x) * signs, x, fast_mode=True)


@MODES
@pytest.mark.parametrize("part", ["real", "imaginary"])
def test_the_part_of_a_complex_output_is_named(fast_mode: bool, part: str) -> None:
    def off(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda grad: grad * 1.1)
        return y + 1j * x if part == "real" else x + 1j * y

    with pytest.raises(
        GradcheckError, match=f"While considering the {part} part of complex outputs only, Jacobian"
    ):
        gradcheck(off, leaf(1.0), fast_mode=fast_mode, check_undefined_grad=False)


@MODES
def test_outputs_of_which_some_are_complex_and_some_need_no_gradient(fast_mode: bool) -> None:
    def function(x: Any, y: Any) -> Any:
        return x + 1j * y, x.detach() * 2, x + 1, (x > 0)

    assert gradcheck(function, (leaf(1.0, 2.0), leaf(0.5, 0.1)), fast_mode=fast_mode)


@MODES
def test_no_output_needs_a_gradient(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: plugrad.tensor([x.item()]), leaf(1.0), fast_mode=fast_mode)
    assert gradcheck(lambda x: plugrad.tensor([1.0]), leaf(1.0), fast_mode=fast_mode)


def test_outputs_must_keep_shape_and_dtype() -> None:
    def shape(x: Any) -> Any:
        return plugrad.cat([x, x]) if x.item() > 1 else x

    def dtype(x: Any) -> Any:
        return x.double() if x.item() > 1 else x.float()

    message = r"return outputs with the same {} when inputs are perturbed on index \(0,\) by 1e-06"
    with pytest.raises(AssertionError, match=message.format("shape")):
        gradcheck(shape, leaf(1.0))
    with pytest.raises(AssertionError, match=message.format("dtype")):
        gradcheck(dtype, leaf(1.0))


def test_overlapping_memory() -> None:
    x = plugrad.ones(1, dtype=plugrad.float64, requires_grad=True).expand(2)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda t: t * 2, x)


def test_functions_that_read_an_input_elsewhere_see_the_step() -> None:
    x = leaf(1.0, 2.0)
    assert gradcheck(lambda _: x * x, x)
    assert x.tolist() == [1.0, 2.0]


def test_inputs_are_as_they_were() -> None:
    x = leaf(1.0, 2.0)
    before = x.data
    gradcheck(lambda t: t * 2, x)
    before[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_options_that_exclude_one_another() -> None:
    x = leaf(1.0)
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward"):
        gradcheck(plugrad.sin, x, check_backward_ad=False)
    with pytest.raises(AssertionError, match="requires check_forward_ad to be True"):
        gradcheck(plugrad.sin, x, check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="at least one of check_fwd_over_rev or check_rev"):
        gradgradcheck(plugrad.sin, x, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="requires check_rev_over_rev to be True"):
        gradgradcheck(plugrad.sin, x, check_fwd_over_rev=True, check_rev_over_rev=False)


def test_grad_outputs_that_need_no_gradient() -> None:
    assert gradgradcheck(lambda x: x.exp(), leaf(0.5), plugrad.ones(1, dtype=plugrad.float64))


def test_non_contiguous_grad_outputs_are_such() -> None:
    seen = []

    class Looking(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append(grads[0].is_contiguous())
            return grads[0] * 2

    gradgradcheck(Looking.apply, leaf(1.0, 2.0), gen_non_contig_grad_outputs=True)
    assert not seen[0]
