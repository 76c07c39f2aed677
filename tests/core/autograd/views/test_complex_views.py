"""Gradients between real and complex numbers: of views as pairs, and of powers."""

from __future__ import annotations

from types import ModuleType

import pytest


def test_a_write_through_both_views_reaches_the_base(lib: ModuleType) -> None:
    x = lib.ones(2, 3, 2, requires_grad=True)
    base = x * 1
    pairs = lib.view_as_real(lib.view_as_complex(base))
    pairs.mul_(2)
    assert pairs._base is base
    base.sum().backward()
    assert x.grad.tolist() == [[[2.0, 2.0]] * 3] * 2


def test_a_write_to_a_complex_view_of_real_numbers(lib: ModuleType) -> None:
    x = lib.ones(2, 2, requires_grad=True)
    base = x * 1
    lib.view_as_complex(base).mul_(3j)
    assert base.tolist() == [[-3.0, 3.0], [-3.0, 3.0]]
    (base * lib.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [[6.0, -3.0], [6.0, -3.0]]


def test_a_write_to_a_real_view_of_complex_numbers(lib: ModuleType) -> None:
    x = lib.ones(4, dtype=lib.complex64, requires_grad=True)
    pairs = lib.view_as_real((x * 1).reshape(2, 2))
    pairs.mul_(2)
    pairs.sum().backward()
    assert x.grad.tolist() == [2 + 2j] * 4


def test_several_views_of_a_complex_view_cannot_be_written_to(lib: ModuleType) -> None:
    parts = lib.view_as_complex(lib.ones(2, 2, 2)).unbind(0)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        parts[0].add_(lib.ones(2, requires_grad=True))


def test_gradients_that_are_not_contiguous(lib: ModuleType) -> None:
    x = lib.ones(3, 2, requires_grad=True)
    (lib.view_as_real(lib.view_as_complex(x)).t() * lib.arange(6.0).view(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_a_negative_number_to_a_complex_power_has_a_gradient(lib: ModuleType) -> None:
    base = -lib.ones(2, dtype=lib.float64)
    power = lib.tensor([0.5 + 1j, -2j], dtype=lib.complex128, requires_grad=True)
    assert lib.autograd.gradcheck(lambda e: lib.pow(base, e), (power,))
