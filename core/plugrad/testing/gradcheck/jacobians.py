"""Jacobians for gradcheck: by finite differences, and by backward, whole or along random vectors.

A Jacobian here has one row per element of the input and one column per element of the output, which
is real: gradcheck looks at the real and the imaginary part of a complex output separately. For a
complex input x + iy the rows are d/dx + i d/dy, as backward computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad.overrides import is_tensor_like
from plugrad.testing.host_values import from_host, to_host

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
# Of a real input a vector; of a complex one a vector for the real and one for the imaginary part.
Direction = Array | tuple[Array, Array]


class GradcheckError(RuntimeError):
    """What `gradcheck` and `gradgradcheck` raise: gradients are wrong."""

    __module__ = "plugrad.autograd.gradcheck"


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def differentiable(result: Any) -> tuple[Any, ...]:
    """The outputs that require grad."""
    return tuple(out for out in as_tuple(result) if is_tensor_like(out) and out.requires_grad)


def wanted_inputs(inputs: Sequence[Any]) -> list[Any]:
    """The inputs that require grad."""
    return [value for value in inputs if is_tensor_like(value) and value.requires_grad]


def backward_from(output: Any, inputs: Sequence[Any], vector: Any) -> tuple[Any, ...]:
    """The gradients of all inputs for one output's gradient."""
    found: tuple[Any, ...] = plugrad.autograd.grad(
        output, wanted_inputs(inputs), vector, retain_graph=True, allow_unused=True
    )
    return found


def flat(tensor: Any) -> Array:
    """The elements as a vector of NumPy's own dtype."""
    wide = np.complex128 if tensor.dtype.is_complex else np.float64
    return to_host(tensor).astype(wide).reshape(-1)


# ---- finite differences


def numerical_jacobians(
    func: Function, inputs: Sequence[Any], outputs: Sequence[Any], target: Any, eps: float
) -> list[Array]:
    """The Jacobian of every output with respect to one input."""
    rows = []
    shape = tuple(target.shape)
    for index in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[index] = 1.0
        direction = (unit, unit) if target.dtype.is_complex else unit
        rows.append(directional_derivatives(func, inputs, target, direction, eps, index))
    dtype = np.complex128 if target.dtype.is_complex else np.float64
    return [
        np.array([row[j] for row in rows], dtype=dtype).reshape(target.numel(), output.numel())
        for j, output in enumerate(outputs)
    ]


def directional_derivatives(
    func: Function,
    inputs: Sequence[Any],
    target: Any,
    direction: Direction,
    eps: float,
    where: object = None,
) -> list[Array]:
    """The derivative of every output along a direction in the space of one input."""
    real = direction[0] if isinstance(direction, tuple) else direction
    along_real = _difference(func, inputs, target, real * eps, eps, where)
    if not isinstance(direction, tuple):
        return along_real
    along_imaginary = _difference(func, inputs, target, direction[1] * (1j * eps), eps, where)
    return [x + 1j * y for x, y in zip(along_real, along_imaginary, strict=True)]


def difference_along(
    func: Function, inputs: Sequence[Any], target: Any, direction: Array, eps: float
) -> list[Array]:
    """The change of every output along a direction in the space of one input, by its length."""
    return _difference(func, inputs, target, direction * eps, eps, None)


def _difference(
    func: Function, inputs: Sequence[Any], target: Any, step: Array, eps: float, where: object
) -> list[Array]:
    low = _outputs_at(func, inputs, target, -step)
    high = _outputs_at(func, inputs, target, step)
    changes = []
    for before, after in zip(low, high, strict=True):
        _check_same(before, after, eps, where)
        changes.append((flat(after) - flat(before)) / (2 * eps))
    return changes


def _outputs_at(func: Function, inputs: Sequence[Any], target: Any, step: Array) -> tuple[Any, ...]:
    """Call the function while an input holds other values, wherever the function reads it."""
    original = target.data
    target.data = from_host(to_host(original) + step.reshape(tuple(target.shape)), original)
    try:
        return tuple(out.clone() for out in as_tuple(func(*inputs)) if is_tensor_like(out))
    finally:
        target.data = original


def _check_same(before: Any, after: Any, eps: float, where: object) -> None:
    place = "" if where is None else f"on index {where} "
    for name, a, b in (
        ("shape", before.shape, after.shape),
        ("dtype", before.dtype, after.dtype),
    ):
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {name} when inputs are perturbed "
                f"{place}by {eps}, but got: {name}s {a} and {b}."
            )


# ---- backward


def analytical_jacobians(
    inputs: Sequence[Any], output: Any, nondet_tol: float, check_grad_dtypes: bool
) -> list[Array]:
    """The Jacobian of one output with respect to every input that requires grad.

    Raises:
        GradcheckError: gradients of another shape or dtype than the input, or that differ from one
            pass to the next.
    """
    count = int(output.numel())
    units = [from_host(unit.reshape(tuple(output.shape)), output) for unit in np.eye(count)]
    first = [backward_from(output, inputs, unit) for unit in units]
    second = [backward_from(output, inputs, unit) for unit in units]
    return _checked(inputs, first, second, nondet_tol, check_grad_dtypes)


def analytical_products(
    inputs: Sequence[Any], output: Any, vector: Array, nondet_tol: float, check_grad_dtypes: bool
) -> list[Array]:
    """The Jacobians of one output, times a vector of the output's size."""
    seed = from_host(vector.reshape(tuple(output.shape)), output)
    first, second = ([backward_from(output, inputs, seed)] for _ in range(2))
    found = _checked(inputs, first, second, nondet_tol, check_grad_dtypes)
    return [column.reshape(-1) for column in found]


def _checked(
    inputs: Sequence[Any],
    first: Sequence[tuple[Any, ...]],
    second: Sequence[tuple[Any, ...]],
    nondet_tol: float,
    check_grad_dtypes: bool,
) -> list[Array]:
    """The gradients of each pass as columns, one matrix per input, if they are as they should."""
    matrices = []
    reentrant = True
    for index, tensor in enumerate(wanted_inputs(inputs)):
        matrix, again = (
            _columns(tensor, [grads[index] for grads in passes], check_grad_dtypes)
            for passes in (first, second)
        )
        if matrix.size and float(np.abs(matrix - again).max()) > nondet_tol:
            reentrant = False
        matrices.append(matrix)
    if not reentrant:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches numerical "
            f"gradient. The tolerance for nondeterminism was {nondet_tol}.\n\nNOTE: an operation "
            "whose results depend on chance or on the order of threads may be expected to fail "
            "here; nondet_tol says by how much its gradients may differ."
        )
    return matrices


def _columns(tensor: Any, grads: Sequence[Any], check_dtype: bool) -> Array:
    dtype = np.complex128 if tensor.dtype.is_complex else np.float64
    matrix = np.zeros((int(tensor.numel()), len(grads)), dtype=dtype)
    for column, grad in enumerate(grads):
        if grad is None:
            continue
        if tuple(grad.shape) != tuple(tensor.shape):
            raise GradcheckError(
                f"Analytical gradient has incorrect size: {tuple(grad.shape)} instead of "
                f"{tuple(tensor.shape)}"
            )
        if grad.dtype is not tensor.dtype:
            if check_dtype:
                raise GradcheckError(
                    f"Gradient has dtype mismatch: {grad.dtype} instead of {tensor.dtype}"
                )
            if grad.dtype.is_complex and not tensor.dtype.is_complex:
                raise GradcheckError(
                    f"Analytical gradient has incorrect type: {grad.dtype} instead of "
                    f"{tensor.dtype}"
                )
        matrix[:, column] = flat(grad)
    return matrix
