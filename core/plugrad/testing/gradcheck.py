"""gradcheck and gradgradcheck: gradients against finite differences, real and complex.

Complex numbers count as two real ones. If `x` holds n complex numbers and `y = func(x)` holds m,
the Jacobian that is compared has 2n rows and 2m columns, real and imaginary parts in turn. Backward
gives the column of Re(y_k) for the output gradient 1 and that of Im(y_k) for 1j.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.host_values import from_host, is_tensor, to_host

Array = np.ndarray[Any, Any]


class GradcheckError(RuntimeError):
    """The gradient that backward computes is not the one that finite differences give."""


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

    Args:
        func: takes tensors and returns a tensor or a sequence of tensors.
        inputs: its arguments; those that require grad should be float64 or complex128.
        eps: the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: False returns False where True raises.
        nondet_tol: by how much two backward passes over the same graph may differ.
        check_undefined_grad: also check that undefined output gradients count as zero.
        check_grad_dtypes: also check that gradients have the dtype of their inputs.
        check_batched_grad: not available yet.
        check_batched_forward_grad: not available yet.
        check_forward_ad: not available yet.
        check_backward_ad: False checks nothing but the arguments.
        fast_mode: compare along one random direction per pair of input and output.
        masked: takes no effect: every tensor is dense.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires grad.
        NotImplementedError: one of the checks that are not available was asked for.

    >>> import plugrad
    >>> from plugrad.testing import gradcheck
    >>> x = plugrad.tensor([0.5, 1.0], dtype=plugrad.float64, requires_grad=True)
    >>> gradcheck(plugrad.sin, (x,))
    True
    """
    asked = (
        ("check_batched_grad", check_batched_grad),
        ("check_batched_forward_grad", check_batched_forward_grad),
        ("check_forward_ad", check_forward_ad),
    )
    for name, value in asked:
        if value:
            raise NotImplementedError(f"gradcheck: {name}=True is not available yet")
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    if not check_backward_ad:
        return True
    check = _Check(func, arguments, eps, atol, rtol)
    try:
        if fast_mode:
            check.along_random_directions()
        else:
            check.element_by_element()
        check.deterministic(nondet_tol)
        if check_grad_dtypes:
            check.grad_dtypes()
        if check_undefined_grad:
            check.undefined_gradients()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


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

    Runs `gradcheck` on the function from inputs and output gradients to input gradients. Without
    `grad_outputs` they are random, the same in every call. The other arguments are gradcheck's.

    >>> import plugrad
    >>> from plugrad.testing import gradgradcheck
    >>> x = plugrad.tensor([0.5, 1.0], dtype=plugrad.float64, requires_grad=True)
    >>> gradgradcheck(plugrad.sin, (x,))
    True
    """
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: check_fwd_over_rev=True is not available yet")
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    if not check_rev_over_rev:
        return True
    if grad_outputs is None:
        outputs = _differentiable(func(*arguments))
        seeds = _random_like(outputs, gen_non_contig_grad_outputs)
    else:
        seeds = _as_tuple(grad_outputs)

    def grad_of_func(*values: Any) -> tuple[Any, ...]:
        split = len(values) - len(seeds)
        wanted = _unique(values[:split])
        results = _differentiable(func(*values[:split]))
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
        fast_mode=fast_mode,
        masked=masked,
    )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _differentiable(result: Any) -> tuple[Any, ...]:
    return tuple(out for out in _as_tuple(result) if is_tensor(out) and out.requires_grad)


def _unique(values: Sequence[Any]) -> list[Any]:
    """The tensors that require grad, each once, in order."""
    found = {id(v): v for v in values if is_tensor(v) and v.requires_grad}
    return list(found.values())


def _check_inputs(arguments: tuple[Any, ...]) -> None:
    wanted = [i for i, v in enumerate(arguments) if is_tensor(v) and v.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i in wanted:
        if arguments[i].dtype not in (plugrad.float64, plugrad.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                stacklevel=3,
            )


def _random_like(outputs: tuple[Any, ...], non_contiguous: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    seeds = []
    for output in outputs:
        values = _complex_or_real(rng.standard_normal(_real_size(output)), output)
        seed = from_host(values, output)
        if non_contiguous and seed.ndim:
            seed = from_host(np.stack([values, values], axis=-1), output).select(-1, 0)
        seeds.append(seed.detach().requires_grad_())
    return tuple(seeds)


def _real_size(tensor: Any) -> int:
    return int(tensor.numel()) * (2 if tensor.dtype.is_complex else 1)


def _coordinates(tensor: Any) -> Array:
    """The values as a flat vector of real numbers."""
    wide = np.complex128 if tensor.dtype.is_complex else np.float64
    return np.array(to_host(tensor), dtype=wide, order="C").reshape(-1).view(np.float64)


def _complex_or_real(coordinates: Array, like: Any) -> Array:
    """The inverse of `_coordinates`."""
    values = np.ascontiguousarray(coordinates)
    if like.dtype.is_complex:
        values = values.view(np.complex128)
    return values.reshape(tuple(like.shape))


class _Check:
    """One run of gradcheck: the function, its inputs, the graph of one call."""

    def __init__(
        self,
        func: Callable[..., Any],
        arguments: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
    ) -> None:
        self.func = func
        self.arguments = arguments
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.inputs = _unique(arguments)
        self.outputs = _differentiable(func(*arguments))
        self.rng = np.random.default_rng(0)

    def element_by_element(self) -> None:
        """Compare whole Jacobians, one row per input and one column per output element."""
        if not self.outputs:
            self._expect_zero()
            return
        analytical = self._analytical_jacobians()
        for i, tensor in enumerate(self.inputs):
            directions = np.eye(_real_size(tensor))
            rows = [self._difference(i, direction) for direction in directions]
            for j, output in enumerate(self.outputs):
                empty = np.zeros((0, _real_size(output)))
                numerical = np.array([row[j] for row in rows]) if rows else empty
                self._compare(i, j, numerical, analytical[i][j], self.atol)

    def along_random_directions(self) -> None:
        """Compare u^T J v for one random pair of unit vectors u and v per input and output."""
        if not self.outputs:
            self._expect_zero()
            return
        vectors = [self._unit_vector(_real_size(output)) for output in self.outputs]
        products = [
            self._backward([v if k == j else None for k, v in enumerate(vectors)])
            for j in range(len(self.outputs))
        ]
        for i, tensor in enumerate(self.inputs):
            u = self._unit_vector(_real_size(tensor))
            differences = self._difference(i, u)
            for j, v in enumerate(vectors):
                numerical = np.array([[differences[j] @ v]])
                analytical = np.array([[u @ products[j][i]]])
                # The sum over elements adds up what each may be off by.
                self._compare(i, j, numerical, analytical, self.atol * float(u.sum() * v.sum()))

    def deterministic(self, tolerance: float) -> None:
        """Two passes over the same graph must give the same."""
        if not self.outputs:
            return
        vectors = [self._unit_vector(_real_size(output)) for output in self.outputs]
        first, second = self._backward(vectors), self._backward(vectors)
        for a, b in zip(first, second, strict=True):
            if a.size and float(np.abs(a - b).max()) > tolerance:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    f"gradient matches numerical gradient. The tolerance for nondeterminism was "
                    f"{tolerance}."
                )

    def grad_dtypes(self) -> None:
        """Gradients must have the dtype of their inputs."""
        for i, grad in enumerate(self._grads([None] * len(self.outputs))):
            if grad is not None and grad.dtype is not self.inputs[i].dtype:
                raise GradcheckError(
                    f"Expected gradient of input {i} to have dtype {self.inputs[i].dtype}, "
                    f"but got {grad.dtype}"
                )

    def undefined_gradients(self) -> None:
        """Undefined output gradients must count as zero, all of them and each by itself."""
        if not self.outputs:
            return
        count = len(self.outputs)
        self._expect_zero_grads(list(range(count)))
        if count > 1:
            for j in range(count):
                self._expect_zero_grads([j])

    def _expect_zero_grads(self, undefined: list[int]) -> None:
        outputs = _differentiable(self.func(*self.arguments))
        roots = [_Undefined.apply(outputs[j]) for j in undefined]
        try:
            grads = plugrad.autograd.grad(
                roots, self.inputs, [plugrad.ones_like(root) for root in roots], allow_unused=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at "
                f'"Notes about undefined output gradients" in the documentation: {error}'
            ) from error
        for grad in grads:
            if grad is not None and bool(np.any(to_host(grad) != 0)):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    "undefined or zero."
                )

    def _expect_zero(self) -> None:
        """No output requires grad: then no input may matter."""
        results = [out for out in _as_tuple(self.func(*self.arguments)) if is_tensor(out)]
        wanted = [k for k, out in enumerate(results) if out.dtype.is_differentiable]
        for i, tensor in enumerate(self.inputs):
            for direction in np.eye(_real_size(tensor)):
                step = self.eps * direction
                high, low = (
                    [out for out in _as_tuple(self._call(i, s)) if is_tensor(out)]
                    for s in (step, -step)
                )
                for k in wanted:
                    change = (_coordinates(high[k]) - _coordinates(low[k])) / (2 * self.eps)
                    if change.size and float(np.abs(change).max()) > self.atol:
                        raise GradcheckError("Numerical gradient for function expected to be zero")

    def _call(self, index: int, step: Array) -> Any:
        """The function with `step` added to the coordinates of one input."""
        moved = self.inputs[index]
        values = _complex_or_real(_coordinates(moved) + step, moved)
        replacement = from_host(values, moved).requires_grad_()
        return self.func(*[replacement if v is moved else v for v in self.arguments])

    def _difference(self, index: int, direction: Array) -> list[Array]:
        """The derivative of every output along `direction` in the space of one input."""
        step = self.eps * direction
        high = _differentiable(self._call(index, step))
        low = _differentiable(self._call(index, -step))
        return [
            (_coordinates(a) - _coordinates(b)) / (2 * self.eps)
            for a, b in zip(high, low, strict=True)
        ]

    def _grads(self, vectors: Sequence[Array | None]) -> Sequence[Any]:
        """Backward from the outputs that have a vector; with ones from all when none has."""
        seeds = {
            j: from_host(_complex_or_real(vector, self.outputs[j]), self.outputs[j])
            for j, vector in enumerate(vectors)
            if vector is not None
        }
        if not seeds:
            seeds = {j: plugrad.ones_like(output) for j, output in enumerate(self.outputs)}
        roots = [self.outputs[j] for j in seeds]
        found: Sequence[Any] = plugrad.autograd.grad(
            roots, self.inputs, list(seeds.values()), retain_graph=True, allow_unused=True
        )
        return found

    def _backward(self, vectors: Sequence[Array | None]) -> list[Array]:
        """The coordinates of the gradient of every input."""
        found = []
        for i, grad in enumerate(self._grads(vectors)):
            tensor = self.inputs[i]
            if grad is None:
                found.append(np.zeros(_real_size(tensor)))
                continue
            if tuple(grad.shape) != tuple(tensor.shape):
                raise GradcheckError(
                    f"Analytical gradient of input {i} has incorrect size: expected "
                    f"{tuple(tensor.shape)}, got {tuple(grad.shape)}"
                )
            if grad.dtype.is_complex != tensor.dtype.is_complex:
                raise GradcheckError(
                    f"Analytical gradient of input {i} has incorrect type: expected "
                    f"{tensor.dtype}, got {grad.dtype}"
                )
            found.append(_coordinates(grad))
        return found

    def _analytical_jacobians(self) -> list[list[Array]]:
        """[input][output] -> matrix, from one backward pass per output coordinate."""
        jacobians = [
            [np.zeros((_real_size(tensor), _real_size(output))) for output in self.outputs]
            for tensor in self.inputs
        ]
        for j, output in enumerate(self.outputs):
            for column, unit in enumerate(np.eye(_real_size(output))):
                vectors: list[Array | None] = [None] * len(self.outputs)
                vectors[j] = unit
                for i, grad in enumerate(self._backward(vectors)):
                    jacobians[i][j][:, column] = grad
        return jacobians

    def _unit_vector(self, size: int) -> Array:
        vector = self.rng.random(size) + 0.1
        return vector / max(float(np.linalg.norm(vector)), 1.0)

    def _compare(self, i: int, j: int, numerical: Array, analytical: Array, atol: float) -> None:
        if np.allclose(analytical, numerical, rtol=self.rtol, atol=atol, equal_nan=True):
            return
        difference = np.abs(analytical - numerical)
        row, column = np.unravel_index(int(np.argmax(difference)), difference.shape)
        parts = ""
        if self.inputs[i].dtype.is_complex or self.outputs[j].dtype.is_complex:
            parts = "\n(complex numbers are listed as real and imaginary part)"
        raise GradcheckError(
            f"Jacobian mismatch for output {j} with respect to input {i},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n"
            f"Greatest difference: {difference[row, column]} at ({row}, {column}), row = input "
            f"element, column = output element{parts}"
        )


class _Undefined(plugrad.autograd.Function):
    """The identity, whose gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        """A copy, so that the result is a tensor of its own."""
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        """Nothing."""
        return
