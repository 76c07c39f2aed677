"""`GraphExecGroup`: several backward passes share what a checkpoint recomputed."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest


def group(lib: Any) -> Any:
    return lib.utils.checkpoint.GraphExecGroup()


@pytest.mark.parametrize("together", [True, False])
def test_passes_in_a_group_recompute_once(lib: Any, together: bool) -> None:
    runs = []

    def function(x: Any) -> Any:
        runs.append(x)
        y = x.sin().cos()
        return y, y.sin().cos()

    x = lib.ones(3, requires_grad=True)
    y, z = lib.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    with group(lib) if together else contextlib.nullcontext():
        (grad_y,) = lib.autograd.grad(z, inputs=(y,), grad_outputs=lib.ones(3))
        (grad_x,) = lib.autograd.grad(y, inputs=(x,), grad_outputs=grad_y)
    assert len(runs) == (2 if together else 3)
    (expected,) = lib.autograd.grad(function(x)[1].sum(), x)
    assert lib.allclose(grad_x, expected)


def test_passes_must_not_overlap(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    y = lib.utils.checkpoint.checkpoint(lambda x: x.sin().cos(), x, use_reentrant=False)
    with group(lib):
        y.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="Performing two backward calls that overlap"):
            y.sum().backward()
    y.sum().backward()


def test_groups_do_not_nest(lib: Any) -> None:
    with group(lib), pytest.raises(RuntimeError), group(lib):
        pass
    with group(lib):
        pass
