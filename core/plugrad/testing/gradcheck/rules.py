"""gradcheck's further tests of backward: zero, undefined and batched gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.gradcheck.jacobians import (
    GradcheckError,
    backward_from,
    differentiable,
    wanted_inputs,
)
from plugrad.testing.host_values import from_host, is_tensor, to_host

BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation: a backward pass "
    "over a batch of gradients (is_grads_batched=True) must give the same as one pass for each of "
    "them. Pass check_batched_grad=False if the function's backward cannot be batched."
)
UNDEFINED = (
    'Please look at "Notes about undefined output gradients": a gradient may be None in backward, '
    "and counts as zero."
)


def check_scales_with_gradient(
    outputs: Sequence[Any], inputs: Sequence[Any], masked: bool | None
) -> None:
    """Gradients of zero must give gradients of zero, of the input's dtype, device and shape."""
    if not outputs:
        return
    wanted = wanted_inputs(inputs)
    zeros = [plugrad.zeros_like(output) for output in outputs]
    grads: tuple[Any, ...] = plugrad.autograd.grad(
        outputs, wanted, zeros, retain_graph=True, allow_unused=True
    )
    for grad, tensor in zip(grads, wanted, strict=True):
        if grad is None:
            continue
        values = to_host(grad)
        fine = np.allclose(values, 0) if masked else not np.any(values != 0)
        if not fine:
            raise GradcheckError("backward not multiplied by grad_output")
        if grad.dtype is not tensor.dtype:
            raise GradcheckError("grad is incorrect type")
        if grad.device != tensor.device:
            raise GradcheckError("grad is incorrect device")
        if tuple(grad.shape) != tuple(tensor.shape):
            raise GradcheckError("grad is incorrect size")


def check_batched(
    inputs: Sequence[Any], output: Any, output_index: int, rng: np.random.Generator
) -> None:
    """A pass over a batch of two gradients must give what two passes give."""
    wanted = wanted_inputs(inputs)
    vectors = [from_host(_random(output, rng), output) for _ in range(2)]
    one_by_one = [backward_from(output, inputs, vector) for vector in vectors]
    try:
        together = plugrad.autograd.grad(
            output,
            wanted,
            plugrad.stack(vectors),
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{BATCHED}"
        ) from error
    for index, (tensor, found) in enumerate(zip(wanted, together, strict=True)):
        expected = np.stack([_values(grads[index], tensor) for grads in one_by_one])
        got = np.zeros_like(expected) if found is None else to_host(found)
        if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-5, atol=1e-8):
            raise GradcheckError(
                f"For output {output_index} and input {index}:\n\n{BATCHED}\n\n"
                f"Got:\n{got}\n\nExpected:\n{expected}"
            )


def _random(output: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = rng.standard_normal(tuple(output.shape))
    if output.dtype.is_complex:
        values = values + 1j * rng.standard_normal(tuple(output.shape))
    return values


def _values(grad: Any, like: Any) -> np.ndarray[Any, Any]:
    return np.zeros(tuple(like.shape), like.dtype.numpy) if grad is None else to_host(grad)


def check_undefined(func: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Undefined gradients must count as zero: of all outputs at once, and of each by itself."""
    outputs = differentiable(func(*inputs))
    count = len(outputs)
    # A Function takes no tensor-likes.
    if count == 0 or not all(is_tensor(output) for output in outputs):
        return
    _expect_zeros(func, inputs, set(range(count)))
    if count > 1:
        for index in range(count):
            _expect_zeros(func, inputs, {index})


def _expect_zeros(func: Callable[..., Any], inputs: Sequence[Any], undefined: set[int]) -> None:
    outputs = differentiable(func(*inputs))
    roots = [
        _Undefined.apply(output) if index in undefined else output
        for index, output in enumerate(outputs)
    ]
    zeros = [plugrad.zeros_like(root) for root in roots]
    try:
        grads = plugrad.autograd.grad(roots, wanted_inputs(inputs), zeros, allow_unused=True)
    except RuntimeError as error:
        _warn_of_check()
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads. {UNDEFINED}"
        ) from error
    for grad in grads:
        if grad is not None and bool(np.any(to_host(grad) != 0)):
            _warn_of_check()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                f"undefined or zero. {UNDEFINED}"
            )


def _warn_of_check() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, you "
        'can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=6,
    )


class _Undefined(plugrad.autograd.Function):
    """The identity with an undefined gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        """A copy, so that the result is a tensor of its own."""
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        """Nothing."""
        return
