"""A real number that is negative, to a complex power."""

from __future__ import annotations

from typing import Any


def test_gradient_toward_a_complex_exponent(lib: Any) -> None:
    exponent = lib.tensor([0.5 + 1j, -1 + 0.25j], dtype=lib.complex128, requires_grad=True)
    base = -2 * lib.ones(2, dtype=lib.float64)
    assert lib.autograd.gradcheck(lambda e: lib.pow(base, e), (exponent,))
    assert lib.autograd.gradcheck(lambda e: lib.pow(-2, e), (exponent,))
