"""autograd.Function: operators written by the user."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def assert_dies(make: Callable[[], Any]) -> None:
    """What `make` gives is gone with its last reference: nothing forms a cycle around it."""
    gc.collect()
    gc.disable()
    try:
        y = make()
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


class Cube(plugrad.autograd.Function):
    """x cubed, from a saved input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * 3 * x * x


class Exp(plugrad.autograd.Function):
    """exp, from its saved output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (y,) = ctx.saved_tensors
        return grads[0] * y


class DoubleInPlace(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2


class Scale(plugrad.autograd.Function):
    """x * y * factor with a factor that is no tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, y: Any, flag: bool = False) -> Any:
        ctx.factor = factor
        ctx.needed = ctx.needs_input_grad
        ctx.save_for_backward(x, y)
        return x * y * factor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, y = ctx.saved_tensors
        gx = grads[0] * y * ctx.factor if ctx.needs_input_grad[0] else None
        gy = grads[0] * x * ctx.factor if ctx.needs_input_grad[2] else None
        return gx, None, gy, None


def test_a_function_passes_gradcheck() -> None:
    assert gradcheck(Cube.apply, leaf(0.5, -1.0))


def test_its_gradient_is_differentiable() -> None:
    assert gradgradcheck(Cube.apply, leaf(0.5, -1.0))
    assert gradgradcheck(Exp.apply, leaf(0.5, -1.0))


def test_its_node_is_named_after_it() -> None:
    y = Cube.apply(leaf())
    assert y.grad_fn.name() == "CubeBackward"
    assert "grad_fn=<CubeBackward>" in repr(y)


def test_nodes_of_functions_are_numbered_like_others() -> None:
    x = leaf()
    numbers = [node._sequence_nr() for node in (Cube.apply(x).grad_fn, (x * 1).grad_fn)]
    assert Cube.apply(x).grad_fn._sequence_nr() == numbers[1] + 1 == numbers[0] + 2


def test_forward_records_nothing() -> None:
    y = Cube.apply(leaf())
    ((function, number),) = y.grad_fn.next_functions
    assert function.name() == plugrad_accumulate_name()
    assert number == 0


def plugrad_accumulate_name() -> str:
    """What the node of a leaf calls itself."""
    return str((leaf() * 1).grad_fn.next_functions[0][0].name())


def test_without_grad_there_is_no_node() -> None:
    assert Cube.apply(plugrad.ones(2)).grad_fn is None
    with plugrad.no_grad():
        assert Cube.apply(leaf()).grad_fn is None


def test_arguments_that_are_no_tensors_get_none() -> None:
    x, y = leaf(2.0), leaf(5.0)
    out = Scale.apply(x, 3.0, y, True)
    out.sum().backward()
    assert (x.grad.item(), y.grad.item()) == (15.0, 6.0)


def test_needs_input_grad_says_which_arguments_require_grad() -> None:
    x = leaf(2.0)
    out = Scale.apply(x, 3.0, plugrad.ones(1, dtype=plugrad.float64))
    assert out.grad_fn.needed[:3] == (True, False, False)
    out.sum().backward()
    assert x.grad.tolist() == [3.0]


def test_the_context_is_the_node() -> None:
    assert Scale.apply(leaf(2.0), 3.0, leaf(1.0)).grad_fn.factor == 3.0


def test_a_none_gradient_is_undefined() -> None:
    class Stop(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return None

    x = leaf()
    Stop.apply(x).sum().backward()
    assert x.grad is None


def test_surplus_none_gradients_are_ignored() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2, None, None

    x = leaf(1.0)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]


class Two(plugrad.autograd.Function):
    """Two outputs; records the gradients that it gets."""

    @staticmethod
    def forward(ctx: Any, x: Any, materialize: bool, seen: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        ctx.seen = seen
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.seen.extend(grads)
        total = sum(g * k for g, k in zip(grads, (2, 3), strict=True) if g is not None)
        return total, None, None


def test_missing_gradients_are_zeros() -> None:
    seen: list[Any] = []
    x = leaf(1.0)
    first, _ = Two.apply(x, True, seen)
    first.sum().backward()
    assert seen[1].tolist() == [0.0]
    assert x.grad.tolist() == [2.0]


def test_missing_gradients_are_none_if_asked_for() -> None:
    seen: list[Any] = []
    x = leaf(1.0)
    first, _ = Two.apply(x, False, seen)
    first.sum().backward()
    assert seen[1] is None


def test_mark_non_differentiable() -> None:
    class SortedAndIndex(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            doubled, part = x * 2, x * 3
            ctx.mark_non_differentiable(part)
            return doubled, part

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            assert grads[1].tolist() == [0.0]
            return grads[0] * 2

    x = leaf(1.0)
    a, b = SortedAndIndex.apply(x)
    assert a.requires_grad
    assert not b.requires_grad
    a.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_integer_outputs_do_not_require_grad() -> None:
    class Mixed(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, (x > 1).to(plugrad.int64)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

    a, b = Mixed.apply(leaf())
    assert a.requires_grad
    assert not b.requires_grad


def test_mark_dirty_makes_the_argument_the_result() -> None:
    x = leaf(1.0)
    y = x * 1
    assert DoubleInPlace.apply(y) is y
    assert y._version >= 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_the_context_does_not_keep_what_was_marked() -> None:
    assert_dies(lambda: DoubleInPlace.apply(leaf() * 1))


def test_returning_an_input_gives_another_tensor_with_history() -> None:
    class Identity(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 5

    x = leaf(1.0)
    y = Identity.apply(x)
    assert y is not x
    assert x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [5.0]


def test_forward_and_setup_context_may_be_separate() -> None:
    class Square(plugrad.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_saved_tensors_check_versions() -> None:
    x = leaf(1.0) * 1
    y = Cube.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_none_comes_back_as_none() -> None:
    class SavesNone(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(None, x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            assert ctx.saved_tensors[0] is None
            return grads[0]

    x = leaf(1.0)
    SavesNone.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_saving_an_output_makes_no_reference_cycle() -> None:
    assert_dies(lambda: Exp.apply(leaf()))


def test_gradients_are_reduced_to_the_shape_of_the_input() -> None:
    class AddRow(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, row: Any) -> Any:
            return x + row

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0], grads[0]

    row = leaf(1.0, 2.0)
    AddRow.apply(
        plugrad.ones(3, 2, dtype=plugrad.float64, requires_grad=True), row
    ).sum().backward()
    assert row.grad.tolist() == [3.0, 3.0]


def test_once_differentiable_refuses_to_be_differentiated() -> None:
    from plugrad.autograd.function import once_differentiable

    class Once(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    weight = leaf(1.0)
    (g,) = plugrad.autograd.grad(Once.apply(x), x, weight, create_graph=True)
    assert g.tolist() == [6.0]
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked"
    ):
        g.sum().backward()


def test_a_backward_pass_inside_backward() -> None:
    class Reentrant(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with plugrad.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x).sum().backward()
            return grads[0] * x.grad

    x = leaf(3.0)
    (Reentrant.apply(x) * 2).sum().backward()
    assert x.grad.tolist() == [12.0]
