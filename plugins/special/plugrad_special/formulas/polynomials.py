"""Formulas and recurrences of ops/polynomials.yaml."""

from __future__ import annotations

from collections.abc import Callable

import plugrad
from plugrad import Tensor
from plugrad_special import special

# The next polynomial of a sequence, from the degree of the last, x, the last and the second to
# last.
Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def degree(n: Tensor) -> Tensor:
    """A degree as an integer."""
    return n.trunc() if n.is_floating_point() else n


def _result_dtype(x: Tensor, n: Tensor) -> plugrad.dtype:
    dtype = plugrad.result_type(x, n)
    return dtype if dtype.is_floating_point else plugrad.get_default_dtype()


def _shifted(x: Tensor, n: Tensor) -> Tensor:
    """Map [0, 1] to [-1, 1], in floats because integers would wrap around."""
    return 2 * x.to(_result_dtype(x, n)) - 1


def _recurrence(x: Tensor, n: Tensor, first: Callable[[Tensor], Tensor], step: Step) -> Tensor:
    """The polynomial of degree n in a sequence that begins with 1 and `first`; 0 for n < 0."""
    x, degrees = plugrad.broadcast_tensors(x.to(_result_dtype(x, n)), degree(n))
    highest = int(degrees.max()) if degrees.numel() else -1
    before, last = plugrad.ones_like(x), first(x)
    result = plugrad.where(degrees == 0, before, plugrad.zeros_like(x))
    for k in range(1, highest + 1):
        result = plugrad.where(degrees == k, last, result)
        before, last = last, step(k, x, last, before)
    return result


def _chebyshev(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return 2 * x * last - before


def chebyshev_t(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(x, n, lambda x: x, _chebyshev)


def chebyshev_u(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(x, n, lambda x: 2 * x, _chebyshev)


def chebyshev_v(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(x, n, lambda x: 2 * x - 1, _chebyshev)


def chebyshev_w(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(x, n, lambda x: 2 * x + 1, _chebyshev)


def shifted_chebyshev_t(x: Tensor, n: Tensor) -> Tensor:
    return special.chebyshev_polynomial_t(_shifted(x, n), n)


def shifted_chebyshev_u(x: Tensor, n: Tensor) -> Tensor:
    return special.chebyshev_polynomial_u(_shifted(x, n), n)


def shifted_chebyshev_v(x: Tensor, n: Tensor) -> Tensor:
    return special.chebyshev_polynomial_v(_shifted(x, n), n)


def shifted_chebyshev_w(x: Tensor, n: Tensor) -> Tensor:
    return special.chebyshev_polynomial_w(_shifted(x, n), n)


def hermite_h(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(
        x, n, lambda x: 2 * x, lambda k, x, last, before: 2 * x * last - 2 * k * before
    )


def hermite_he(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(x, n, lambda x: x, lambda k, x, last, before: x * last - k * before)


def laguerre_l(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(
        x,
        n,
        lambda x: 1 - x,
        lambda k, x, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    )


def legendre_p(x: Tensor, n: Tensor) -> Tensor:
    return _recurrence(
        x,
        n,
        lambda x: x,
        lambda k, x, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1),
    )


def gegenbauer_or_zero(n: Tensor, alpha: Tensor | float, x: Tensor) -> Tensor:
    """The Gegenbauer function; 0 for integers n < 0, which the derivative of a constant needs."""
    return _from_degree_0(n, lambda n: special.eval_gegenbauer(n, alpha, x))


def genlaguerre_derivative(n: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    return _from_degree_0(n - 1, lambda n: -special.eval_genlaguerre(n, alpha + 1, x))


def laguerre_derivative(n: Tensor, x: Tensor) -> Tensor:
    return _from_degree_0(n - 1, lambda n: -special.eval_genlaguerre(n, 1, x))


def jacobi_derivative(n: Tensor, alpha: Tensor, beta: Tensor, x: Tensor) -> Tensor:
    factor = (n + alpha + beta + 1) / 2
    return _from_degree_0(
        n - 1, lambda lower: factor * special.eval_jacobi(lower, alpha + 1, beta + 1, x)
    )


def _from_degree_0(n: Tensor, polynomial: Callable[[Tensor], Tensor]) -> Tensor:
    negative = (n < 0) & (n == n.round())
    return plugrad.where(
        negative, 0.0, polynomial(plugrad.where(negative, plugrad.zeros_like(n), n))
    )
