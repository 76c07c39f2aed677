"""A pack hook that raises while a Function saves leaves no cycle behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import plugrad


@pytest.fixture
def without_collector() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def saving_its_output(lib: Any, made: list[Any]) -> Any:
    class Saves(lib.autograd.Function):  # type: ignore[misc]  # the base is not known
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.clone()
            ctx.save_for_backward(y)
            made.append(weakref.ref(y))
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            _ = ctx.saved_tensors
            return grad

    return Saves


def test_a_recomputation_that_stops_early_frees_what_it_made(without_collector: None) -> None:
    made: list[Any] = []
    function = saving_its_output(plugrad, made)
    x = plugrad.ones(3, requires_grad=True)

    def run() -> None:
        y = plugrad.utils.checkpoint.checkpoint(function.apply, x, use_reentrant=False)
        y.sum().backward()

    run()
    assert len(made) == 2
    assert [reference() for reference in made] == [None, None]


def test_an_error_frees_what_was_to_be_saved(lib: Any, without_collector: None) -> None:
    made: list[Any] = []
    function = saving_its_output(lib, made)
    x = lib.ones(3, requires_grad=True)

    def fail(tensor: Any) -> Any:
        raise ValueError("no room")

    def run() -> None:
        try:
            with lib.autograd.graph.saved_tensors_hooks(fail, lambda packed: packed):
                function.apply(x)
        except ValueError:
            pass

    run()
    assert [reference() for reference in made] == [None]
