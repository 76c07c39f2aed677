"""Operators that copy what a view operator gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing import gradcheck
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestViewCopies(OpSuite):
    cases = family_cases("view_copies")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: plugrad.select_copy(plugrad.complex(x, 2 * x), 0, 1),
        lambda x: plugrad.slice_copy(plugrad.complex(x, 2 * x), 0, 1, 3),
        plugrad.view_as_complex_copy,
    ],
)
def test_complex_copies_have_gradients_which_pytorchs_have_not(
    function: Callable[..., Any],
) -> None:
    x = plugrad.from_numpy(np.arange(6.0).reshape(3, 2)).requires_grad_()
    assert gradcheck(function, (x,))


def test_view_copy_takes_any_shape_of_as_many_elements() -> None:
    """A view of these is refused, since their elements do not lie in that order."""
    x = plugrad.arange(6).reshape(2, 3)
    for given in (x.t(), x[:1].expand(2, 3)):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            given.view(6)
        copied = plugrad.view_copy(given, (6,))
        assert copied.tolist() == given.numpy().reshape(6).tolist()
        assert copied.is_contiguous()
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        plugrad.view_copy(x, (4,))
