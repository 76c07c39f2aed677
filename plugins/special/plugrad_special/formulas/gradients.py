"""Shared code of formulas for operators with several results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrad import Tensor

# Gradients of the results; None for an unused result.
Gradients = Sequence[Tensor | None]


def total(grads: Gradients, *derivatives: Callable[[], Tensor]) -> Tensor | None:
    """The gradient of an input: the sum of the results' gradients times conjugated derivatives."""
    found: Tensor | None = None
    for grad, derivative in zip(grads, derivatives, strict=True):
        if grad is not None:
            term = grad * derivative().conj()
            found = term if found is None else found + term
    return found
