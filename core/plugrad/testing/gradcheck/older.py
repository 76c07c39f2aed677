"""Jacobians under older PyTorch names, which warn that they are deprecated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrad
from plugrad.tensor.calls.annotations import explains
from plugrad.testing.gradcheck.jacobians import (
    Array,
    GradcheckError,
    analytical_jacobians,
    as_tuple,
    backward_from,
    numerical_jacobians,
    wanted_inputs,
)


@explains
def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Any, ...]:
    """The Jacobians of the first output of `fn(inputs)`, by finite differences.

    Args:
        fn: takes the inputs as one tuple.
        target: the tensors to differentiate with respect to; default the inputs.
        grad_out: must be 1.

    Returns matrices of a row per element of the input and a column per element of the output.
    """
    _warn("get_numerical_jacobian")
    _check_grad_out("get_numerical_jacobian", grad_out)
    arguments = as_tuple(inputs)

    def packed(*values: Any) -> Any:
        return fn(values)

    outputs = as_tuple(packed(*arguments))
    _check_real("get_numerical_jacobian", outputs)
    wanted = wanted_inputs(arguments if target is None else as_tuple(target))
    return tuple(
        _tensor(numerical_jacobians(packed, arguments, outputs, tensor, eps)[0])
        for tensor in wanted
    )


@explains
def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Any, ...]:
    """The Jacobians of all outputs with respect to one input, by finite differences."""
    arguments = as_tuple(inputs)
    tensor = arguments[input_idx] if input is None else input
    found = numerical_jacobians(fn, arguments, as_tuple(outputs), tensor, eps)
    return tuple(_tensor(matrix) for matrix in found)


@explains
def get_analytical_jacobian(
    inputs: Any, output: plugrad.Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """The Jacobians of an output by backward; whether two passes agree, and sizes, and dtypes."""
    _warn("get_analytical_jacobian")
    _check_grad_out("get_analytical_jacobian", grad_out)
    _check_real("get_analytical_jacobian", (output,))
    arguments = as_tuple(inputs)
    wanted = wanted_inputs(arguments)
    grads = backward_from(output, arguments, plugrad.ones_like(output))
    pairs = [(grad, x) for grad, x in zip(grads, wanted, strict=True) if grad is not None]
    sizes = all(tuple(grad.shape) == tuple(x.shape) for grad, x in pairs)
    dtypes = all(grad.dtype is x.dtype for grad, x in pairs)
    try:
        analytical_jacobians(arguments, output, nondet_tol, False)
        reentrant = True
    except GradcheckError:
        reentrant = False
    matrices = analytical_jacobians(arguments, output, float("inf"), False)
    return tuple(_tensor(matrix) for matrix in matrices), reentrant, sizes, dtypes


def _tensor(matrix: Array) -> Any:
    return plugrad.from_numpy(np.array(matrix))


def _warn(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is deprecated "
        "and will be removed.",
        FutureWarning,
        stacklevel=4,
    )


def _check_grad_out(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _check_real(name: str, outputs: tuple[Any, ...]) -> None:
    if any(output.dtype.is_complex for output in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return "
            "complex outputs."
        )


__all__ = [
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]
