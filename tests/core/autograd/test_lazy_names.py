"""What `plugrad.autograd` and `plugrad.library` offer that lives on other layers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import plugrad


def test_gradcheck_is_reached_through_autograd() -> None:
    from plugrad.autograd import gradcheck, gradgradcheck

    x = plugrad.tensor([0.5, 2.0], dtype=plugrad.float64, requires_grad=True)
    assert gradcheck(lambda t: t * t, (x,))
    assert gradgradcheck(lambda t: t * t * t, (x,))
    assert plugrad.autograd.gradcheck is plugrad.testing.gradcheck


def test_the_test_kit_is_loaded_only_then() -> None:
    code = "import sys, plugrad; assert 'plugrad.testing' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_names_are_missing_as_usual() -> None:
    with pytest.raises(AttributeError, match=r"module 'plugrad\.autograd' has no attribute 'nope'"):
        _ = plugrad.autograd.nope


def test_library_is_a_module() -> None:
    import plugrad.library
    from plugrad.library import Library, define, impl

    assert plugrad.library.Library is Library
    assert callable(define)
    assert callable(impl)
