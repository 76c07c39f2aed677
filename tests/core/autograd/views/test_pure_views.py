"""Functions that say that they return a view and no more: `ctx._is_pure_view`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


def first_two(lib: ModuleType, calls: list[str], pure: bool = True) -> Any:
    class FirstTwo(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx._is_pure_view = pure
            return a.narrow(0, 0, 2)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            calls.append("backward")
            return lib.cat([grad, grad.new_zeros(1)])

    return FirstTwo


def test_a_pure_view_may_be_written_to_and_is_made_anew(lib: ModuleType) -> None:
    calls: list[str] = []
    leaf = lib.ones(3, requires_grad=True)
    base = leaf * 1
    view = first_two(lib, calls).apply(base)
    assert view.grad_fn.name() == "FirstTwoBackward"
    view.mul_(3)
    assert base.grad_fn.name().endswith("CopySlices")
    view.sum().backward()
    assert calls == []
    assert leaf.grad.tolist() == [3.0, 3.0, 0.0]


def test_a_pure_view_that_nobody_writes_to_uses_its_own_backward(lib: ModuleType) -> None:
    calls: list[str] = []
    leaf = lib.ones(3, requires_grad=True)
    first_two(lib, calls).apply(leaf * 1).sum().backward()
    assert calls == ["backward"]


def test_a_pure_view_of_a_leaf_cannot_be_written_to(lib: ModuleType) -> None:
    view = first_two(lib, []).apply(lib.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(3)


def test_a_view_that_is_not_pure_cannot_be_written_to(lib: ModuleType) -> None:
    view = first_two(lib, [], pure=False).apply(lib.ones(3, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view.mul_(3)


def test_a_pure_view_has_one_input_and_one_output(lib: ModuleType) -> None:
    class Two(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx._is_pure_view = True
            return a, a + b

    a = lib.ones(2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="can only have one input Tensor and one output Tensor"):
        Two.apply(a, a * 2)


def test_a_view_of_something_else_cannot_be_marked_dirty(lib: ModuleType) -> None:
    class Wrong(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            out = a.clone().view_as(a)
            ctx.mark_dirty(out)
            return out

    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        Wrong.apply(lib.ones(2, requires_grad=True) * 1)


def test_saved_tensors_are_not_made_by_hand(lib: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python"):
        lib.autograd.SavedTensor()
    y = lib.ones(2, requires_grad=True).exp()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_result.register_hooks(lambda x: x)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_result.register_hooks(1, 1)
