"""What formulas of operators with several results share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrad import Tensor

# Of the results; None for one that nobody used.
Gradients = Sequence[Tensor | None]


def total(grads: Gradients, *derivatives: Callable[[], Tensor]) -> Tensor | None:
    """The gradient of an input: those of the results times the conjugated derivatives, summed."""
    found: Tensor | None = None
    for grad, derivative in zip(grads, derivatives, strict=True):
        if grad is not None:
            term = grad * derivative().conj()
            found = term if found is None else found + term
    return found
