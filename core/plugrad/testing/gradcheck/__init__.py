"""gradcheck and gradgradcheck: gradients against finite differences, real and complex."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad.overrides import is_tensor_like
from plugrad.tensor.calls.annotations import explains
from plugrad.testing.gradcheck import rules as rules
from plugrad.testing.gradcheck.forward import ForwardCheck
from plugrad.testing.gradcheck.jacobians import (
    Array,
    Direction,
    GradcheckError,
    analytical_jacobians,
    analytical_products,
    as_tuple,
    differentiable,
    directional_derivatives,
    numerical_jacobians,
    wanted_inputs,
)
from plugrad.testing.host_values import from_host

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

FAST_FAIL_SLOW_OK = (
    "Fast gradcheck failed but element-wise differences are small. This means that the test "
    "might've passed in slow_mode! Pass fast_mode=False to compare element by element."
)


@explains
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with central differences.

    A function with complex outputs is checked as two functions, of the real and of the imaginary
    parts.

    Args:
        func: takes tensors and returns a tensor or a sequence of tensors.
        inputs: its arguments; those that require grad should be float64 or complex128. While
            differences are taken, they hold other values.
        eps: the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance, to the numerical Jacobian.
        raise_exception: False returns False where True raises.
        nondet_tol: by how much two backward passes over the same graph may differ.
        check_undefined_grad: also check that undefined output gradients, or tangents of inputs,
            count as zero.
        check_grad_dtypes: also check that gradients have the dtype of their inputs.
        check_batched_grad: also check that a pass over a batch of gradients gives what one pass
            for each gives.
        check_batched_forward_grad: also check that tangents which `vmap` maps over give what each
            of them gives.
        check_forward_ad: check forward mode.
        check_backward_ad: check backward mode; checking nothing at all is an error.
        fast_mode: compare along one random direction per pair of input and output.
        masked: True forgives small gradients where they should be exactly zero, for inputs of
            which not every element counts.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires grad.
        RuntimeError: an input has elements that share memory.
        AssertionError: options that exclude one another; or what `func` returns changes shape or
            dtype with its inputs' values.

    >>> import plugrad
    >>> x = plugrad.tensor([0.5, 1.0], dtype=plugrad.float64, requires_grad=True)
    >>> plugrad.autograd.gradcheck(plugrad.sin, (x,))
    True
    """
    _require(
        check_forward_ad or check_backward_ad,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    )
    _require(
        not check_batched_grad or check_backward_ad,
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    )
    _require(
        not check_batched_forward_grad or check_forward_ad,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    )
    arguments = as_tuple(inputs)
    _check_inputs(arguments)
    check = _Check(func, arguments, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        if check_forward_ad:
            check.forward_mode(check_undefined_grad, check_batched_forward_grad)
        if not check_backward_ad:
            return True
        check.backward_mode()
        outputs = differentiable(check.result)
        if check_batched_grad:
            rng = np.random.default_rng(0)
            for index, output in enumerate(outputs):
                rules.check_batched(arguments, output, index, rng)
        rules.check_scales_with_gradient(outputs, arguments, masked)
        if check_undefined_grad:
            rules.check_undefined(func, arguments)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@explains
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of gradients of `func` with central differences.

    Runs `gradcheck` on the function from inputs and output gradients to input gradients.

    Args:
        grad_outputs: the output gradients; default random ones in [-1, 1] that require grad, the
            same in every call.
        gen_non_contig_grad_outputs: make random ones non-contiguous.
        check_fwd_over_rev: check the forward mode of gradients.
        check_rev_over_rev: check their backward mode; checking nothing at all is an error.

    The other arguments and the errors are the same as for gradcheck.

    >>> import plugrad
    >>> x = plugrad.tensor([0.5, 1.0], dtype=plugrad.float64, requires_grad=True)
    >>> plugrad.autograd.gradgradcheck(plugrad.sin, (x,))
    True
    """
    _require(
        check_fwd_over_rev or check_rev_over_rev,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    )
    _require(
        not check_undefined_grad or check_rev_over_rev,
        "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
    )
    _require(
        not check_batched_grad or check_rev_over_rev,
        "Setting check_batched_grad=True requires check_rev_over_rev to be True",
    )
    arguments = as_tuple(inputs)
    if grad_outputs is None:
        outputs = differentiable(func(*arguments))
        seeds = _random_like(outputs, gen_non_contig_grad_outputs)
    else:
        seeds = as_tuple(grad_outputs)
    split = len(arguments)

    def grad_of_func(*values: Any) -> tuple[Any, ...]:
        results = differentiable(func(*values[:split]))
        wanted = wanted_inputs(values[:split])
        grads = plugrad.autograd.grad(
            results, wanted, values[split:], create_graph=True, allow_unused=True
        )
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        grad_of_func,
        arguments + seeds,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _check_inputs(arguments: tuple[Any, ...]) -> None:
    wanted = [i for i, v in enumerate(arguments) if is_tensor_like(v) and v.requires_grad]
    for i in wanted:
        tensor = arguments[i]
        if tensor.dtype not in (plugrad.float64, plugrad.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        steps = zip(tensor.stride(), tensor.shape, strict=True)
        if not all(step > 0 or size <= 1 for step, size in steps):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _random_like(outputs: tuple[Any, ...], non_contiguous: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    seeds = []
    for output in outputs:
        shape = tuple(output.shape)
        values: Array = rng.uniform(-1.0, 1.0, shape)
        if output.dtype.is_complex:
            values = values + 1j * rng.uniform(-1.0, 1.0, shape)
        seed = from_host(values, output)
        if non_contiguous and shape:
            seed = from_host(np.stack([values, values], axis=-1), output).select(-1, 0)
        seeds.append(seed.detach().requires_grad_())
    return tuple(seeds)


class _Check:
    """One run: the function, its inputs, and the settings of the comparison."""

    def __init__(
        self,
        func: Callable[..., Any],
        arguments: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        check_grad_dtypes: bool,
        fast_mode: bool,
    ) -> None:
        self.func = func
        self.arguments = arguments
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.nondet_tol = nondet_tol
        self.check_grad_dtypes = check_grad_dtypes
        self.fast_mode = fast_mode
        self.compare = self._along_random_directions if fast_mode else self._element_by_element
        self.inputs = wanted_inputs(arguments)
        self.result = func(*arguments)

    def forward_mode(self, check_undefined: bool, check_batched: bool) -> None:
        """Compare tangents, and run the other requested checks of them."""
        check = ForwardCheck(
            self.func,
            self.arguments,
            self.eps,
            self.atol,
            self.check_grad_dtypes,
            self._close,
            _shown,
        )
        if self.fast_mode:
            check.along_random_directions()
        else:
            check.element_by_element()
        if check_undefined:
            check.undefined()
        if check_batched:
            check.batched()

    def backward_mode(self) -> None:
        """Compare all Jacobians; for complex outputs, the Jacobians of both parts."""
        outputs = [out for out in as_tuple(self.result) if is_tensor_like(out)]
        if not any(out.dtype.is_complex for out in outputs):
            self.compare(self.func, self.result, [""] * len(outputs))
            return
        for part in ("imaginary", "real"):
            prefixes = [
                f"While considering the {part} part of complex outputs only, "
                if out.dtype.is_complex
                else ""
                for out in differentiable(self.result)
            ]
            func = _part(self.func, part)
            self.compare(func, func(*self.arguments), prefixes)

    def _element_by_element(
        self, func: Callable[..., Any], result: Any, prefixes: Sequence[str]
    ) -> None:
        results = [out for out in as_tuple(result) if is_tensor_like(out)]
        outputs = differentiable(result)
        numerical = [
            numerical_jacobians(func, self.arguments, results, tensor, self.eps)
            for tensor in self.inputs
        ]
        if not outputs:
            _expect_zero([matrix for matrices in numerical for matrix in matrices], 0.0)
            return
        kept = [index for index, out in enumerate(results) if out.requires_grad]
        for j, output in enumerate(outputs):
            analytical = analytical_jacobians(
                self.arguments, output, self.nondet_tol, self.check_grad_dtypes
            )
            for i, matrix in enumerate(analytical):
                expected = numerical[i][kept[j]]
                if not self._close(matrix, expected, self.atol):
                    raise GradcheckError(_mismatch(prefixes[j], i, j, expected, matrix))

    def _along_random_directions(
        self, func: Callable[..., Any], result: Any, prefixes: Sequence[str]
    ) -> None:
        """Compare u^T J v for a random pair of unit vectors u and v per input and output."""
        rng = np.random.default_rng(0)
        results = [out for out in as_tuple(result) if is_tensor_like(out)]
        outputs = differentiable(result)
        directions = [_direction(tensor, rng) for tensor in self.inputs]
        vectors = [_unit_vector(int(output.numel()), rng) for output in outputs]
        changes = [
            directional_derivatives(func, self.arguments, tensor, u, self.eps)
            for tensor, u in zip(self.inputs, directions, strict=True)
        ]
        if not outputs:
            _expect_zero([change for of_input in changes for change in of_input], self.nondet_tol)
            return
        kept = [index for index, out in enumerate(results) if out.requires_grad]
        products = [
            analytical_products(self.arguments, output, v, self.nondet_tol, self.check_grad_dtypes)
            for output, v in zip(outputs, vectors, strict=True)
        ]
        for i, u in enumerate(directions):
            for j, v in enumerate(vectors):
                numerical = np.asarray((changes[i][kept[j]] * v).sum())
                analytical = np.asarray(_along(products[j][i], u))
                # A sum over elements adds up what each may be off by.
                atol = self.atol * _sum(u) * float(v.sum())
                if not self._close(analytical, numerical, atol):
                    message = _mismatch(prefixes[j], i, j, numerical, analytical)
                    raise GradcheckError(message + self._in_slow_mode(func, results, outputs, i, j))

    def _in_slow_mode(
        self,
        func: Callable[..., Any],
        results: Sequence[Any],
        outputs: Sequence[Any],
        i: int,
        j: int,
    ) -> str:
        """Compare the whole Jacobians, after a direction has failed."""
        place = [index for index, out in enumerate(results) if out.requires_grad][j]
        numerical = numerical_jacobians(func, self.arguments, results, self.inputs[i], self.eps)
        analytical = analytical_jacobians(self.arguments, outputs[j], float("inf"), False)
        message = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {_shown(numerical[place])}\nAnalytical:\n{_shown(analytical[i])}\n\n"
            "The max per-element difference (slow mode) is: "
            f"{np.abs(numerical[place] - analytical[i]).max()}.\n"
        )
        if self._close(analytical[i], numerical[place], self.atol):
            message += FAST_FAIL_SLOW_OK
        return message

    def _close(self, analytical: Array, numerical: Array, atol: float) -> bool:
        return bool(np.allclose(analytical, numerical, rtol=self.rtol, atol=atol))


def _part(func: Callable[..., Any], part: str) -> Callable[..., Any]:
    """The function of the real, or imaginary, parts of the outputs that are complex."""

    def parts(*arguments: Any) -> tuple[Any, ...]:
        return tuple(
            (out.real if part == "real" else out.imag)
            if is_tensor_like(out) and out.dtype.is_complex
            else out
            for out in as_tuple(func(*arguments))
        )

    return parts


def _expect_zero(changes: Sequence[Array], tolerance: float) -> None:
    """No output requires grad: then no input may matter."""
    for change in changes:
        if change.size and float(np.abs(change).max()) > tolerance:
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _mismatch(prefix: str, i: int, j: int, numerical: Array, analytical: Array) -> str:
    return (
        f"{prefix}Jacobian mismatch for output {j} with respect to input {i},\n"
        f"numerical:{_shown(numerical)}\nanalytical:{_shown(analytical)}\n"
    )


def _shown(values: Array) -> str:
    return repr(plugrad.from_numpy(np.array(values)))


def _unit_vector(size: int, rng: np.random.Generator) -> Array:
    vector = rng.random(size)
    return vector / (float(np.linalg.norm(vector)) or 1.0)


def _direction(tensor: Any, rng: np.random.Generator) -> Direction:
    size = int(tensor.numel())
    real = _unit_vector(size, rng)
    return (real, _unit_vector(size, rng)) if tensor.dtype.is_complex else real


def _along(product: Array, direction: Direction) -> Any:
    """A column of the Jacobian times a direction, part by part if the input is complex."""
    if isinstance(direction, tuple):
        return product.real @ direction[0] + 1j * (product.imag @ direction[1])
    return product @ direction


def _sum(direction: Direction) -> float:
    parts = direction if isinstance(direction, tuple) else (direction,)
    return float(sum(part.sum() for part in parts))
