"""Functions that write to their inputs, and views that they return; run on plugrad and torch."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import plugrad

LEAF = "a leaf Variable that requires grad has been used in an in-place operation."
IN_FUNCTION = (
    "This view was created inside a custom Function \\(or because an input was returned as-is\\) "
    "and the autograd logic to handle view\\+inplace would override the custom backward"
)
SEVERAL = (
    "Output 0 of My is a view and is being modified inplace. This view is the output of a function "
    "that returns multiple views"
)


def function(lib: Any, forward: Callable[..., Any], backward: Any = None) -> Any:
    """A Function with this `forward(ctx, ...)`; its backward doubles the first gradient."""
    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward or (lambda ctx, *grads: grads[0] * 2)),
    }
    return type(lib.autograd.Function)("My", (lib.autograd.Function,), members)


def double_(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def double_and_copy(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), x * 1


def leaf(lib: Any) -> Any:
    return lib.ones(3, requires_grad=True)


def test_a_dirty_input_is_the_output(lib: Any) -> None:
    x = leaf(lib)
    y = x * 1
    former = y.grad_fn
    out = function(lib, double_).apply(y)
    assert out is y
    assert y.grad_fn.name() == "MyBackward"
    assert y.grad_fn.next_functions == ((former, 0),)
    assert y._version == 2  # once by mul_, once by mark_dirty
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_dirty_input_that_requires_no_grad(lib: Any) -> None:
    x = lib.ones(3)
    assert function(lib, double_).apply(x) is x
    assert not x.requires_grad
    assert x._version == 2


def test_a_dirty_input_comes_to_require_grad_with_another(lib: Any) -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(y)

    x, y = lib.ones(3), leaf(lib)
    function(lib, forward, lambda ctx, g: (None, g * 2)).apply(x, y)
    assert x.grad_fn.name() == "MyBackward"
    x.sum().backward()
    assert y.grad.tolist() == [2, 2, 2]


def test_a_dirty_input_must_be_returned(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2).view(3, 1)

    for x in (leaf(lib) * 1, lib.ones(3)):
        with pytest.raises(
            RuntimeError,
            match="Some elements marked as dirty during the forward method were not returned as",
        ):
            function(lib, forward).apply(x)


def test_a_leaf_cannot_be_dirty(lib: Any) -> None:
    with pytest.raises(RuntimeError, match=LEAF):
        function(lib, double_).apply(leaf(lib))


def test_a_view_of_a_leaf_cannot_be_dirty(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match="a view of a leaf Variable that requires grad is being used in an in-place operation",
    ):
        function(lib, double_).apply(leaf(lib)[:2])
    with lib.no_grad():
        view = leaf(lib)[:2]
    with pytest.raises(RuntimeError, match=LEAF):
        function(lib, double_).apply(view)


def test_marking_what_is_no_input_warns(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 1
        ctx.mark_dirty(y)
        return y

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = function(lib, forward).apply(leaf(lib))
    # PyTorch warns once in a process.
    if lib.__name__ == "plugrad":
        assert "received a tensor that was not an input" in str(caught[0].message)
    assert y.grad_fn.name() == "MyBackward"


def test_dirty_and_non_differentiable(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    x = leaf(lib) * 1
    y = function(lib, forward).apply(x)
    assert y is not x
    assert not y.requires_grad
    assert x.grad_fn.name() == "MulBackward0"


def test_writing_to_a_view_writes_to_its_base(lib: Any) -> None:
    x = leaf(lib)
    base = x * 1
    view = base[:2]
    assert function(lib, double_).apply(view) is view
    assert type(base.grad_fn).__name__ == "CopySlices"
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn.next_functions[0][0] is base.grad_fn
    (base * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2, 4, 3]


def test_writing_to_a_view_that_is_not_the_first_argument() -> None:
    """PyTorch hands the base the gradient of the first argument."""

    def forward(ctx: Any, text: str, factor: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(factor)

    x, factor = leaf(plugrad), plugrad.tensor(2.0, requires_grad=True)
    base = x * 1
    my = function(plugrad, forward, lambda ctx, grad: (None, grad.sum() * 10, grad * 2))
    my.apply("text", factor, base[:2])
    base.sum().backward()
    assert x.grad.tolist() == [2, 2, 1]
    assert factor.grad.item() == 20


def test_writing_to_a_view_with_two_outputs(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match="If your Function modifies inplace an input that is a view of another Tensor, your",
    ):
        function(lib, double_and_copy).apply((leaf(lib) * 1)[:2])
    x = leaf(lib) * 1
    first, second = function(lib, double_and_copy).apply(x)
    assert first is x
    assert (first.output_nr, second.output_nr) == (0, 1)


def test_writing_to_one_of_several_views(lib: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"Output 0 of Split is a view and is being modified inplace. This view is the output "
        "of a function that returns multiple views",
    ):
        function(lib, double_).apply((leaf(lib) * 1).chunk(2)[0])


def test_a_saved_dirty_input_is_what_it_became(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    x = lib.zeros(3, requires_grad=True)
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 1)
    assert y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_writing_to_what_a_function_saved(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib) * 1
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"has been modified by an inplace operation: .* is at"):
        y.sum().backward()


def test_the_retained_gradient_is_that_after_the_write(lib: Any) -> None:
    seen: list[Any] = []
    x = leaf(lib) * 1
    x.retain_grad()
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    function(lib, double_).apply(x)
    (x * 1).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert seen == [[2, 2, 2]]


VIEWS: dict[str, Callable[..., Any]] = {
    "an input returned as it is": lambda ctx, x: x,
    "a view of an input": lambda ctx, x: x.view(3, 1),
    "a view of something else": lambda ctx, x: (x * 1).view(3, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_from_functions_cannot_be_written_to(lib: Any, name: str) -> None:
    y = function(lib, VIEWS[name]).apply(leaf(lib) * 1)
    with pytest.raises(
        RuntimeError, match=f"Output 0 of My is a view and is being modified inplace. {IN_FUNCTION}"
    ):
        y.mul_(2)


@pytest.mark.parametrize("name", list(VIEWS)[:2])
def test_views_from_functions_cannot_follow_their_base(lib: Any, name: str) -> None:
    x = leaf(lib) * 1
    y = function(lib, VIEWS[name]).apply(x)
    x.mul_(2)
    with pytest.raises(
        RuntimeError,
        match="Output 0 of My is a view and its base or another view of its base has been modified "
        f"inplace. {IN_FUNCTION}",
    ):
        _ = y.grad_fn


@pytest.mark.parametrize(
    "forward",
    [
        lambda ctx, x: (x, x),
        lambda ctx, x: (x.view(3, 1), x * 1),
        lambda ctx, x: ((x * 1).view(3, 1), x * 2),
    ],
)
def test_one_of_several_outputs_that_is_a_view(lib: Any, forward: Any) -> None:
    y, _ = function(lib, forward).apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=SEVERAL):
        y.mul_(2)


def test_a_second_output_without_gradient_does_not_count(lib: Any) -> None:
    y, _, _ = function(lib, lambda ctx, x: (x.view(3, 1), x.long(), 5)).apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=IN_FUNCTION):
        y.mul_(2)


def test_views_without_grad_can_be_written_to(lib: Any) -> None:
    x = lib.ones(3)
    y = function(lib, lambda ctx, x: x.view(3, 1)).apply(x)
    y.mul_(2)
    assert x.tolist() == [2, 2, 2]


def test_a_view_that_is_not_differentiable_still_requires_grad(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        view = x.view(3, 1)
        ctx.mark_non_differentiable(view)
        return x * 1, view

    _, view = function(lib, forward).apply(leaf(lib))
    assert view.requires_grad
    assert view.grad_fn is None


def test_a_saved_dirty_view_makes_no_cycle(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        ctx.save_for_backward(x)
        return x

    gc.collect()
    gc.disable()
    try:
        base = leaf(lib) * 1
        view = base[:2]
        function(lib, forward).apply(view)
        gone = [weakref.ref(item) for item in (base, view)]
        del base, view
        assert [item() for item in gone] == [None] * 2
    finally:
        gc.enable()
