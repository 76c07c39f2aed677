"""What `Function.apply` makes of what `forward` returns; run on plugrad and on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def function(lib: Any, forward: Callable[..., Any], backward: Any = None) -> Any:
    """A Function with this `forward(ctx, x)`; its backward hands on the first gradient."""
    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward or (lambda ctx, *grads: grads[0])),
    }
    return type(lib.autograd.Function)("My", (lib.autograd.Function,), members)


def leaf(lib: Any) -> Any:
    return lib.ones(3, requires_grad=True)


def seen_gradients(lib: Any, forward: Callable[..., Any]) -> list[Any]:
    """What `backward` gets if only the first output is used."""
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.extend(None if grad is None else grad.tolist() for grad in grads)
        return grads[0]

    function(lib, forward, backward).apply(leaf(lib))[0].sum().backward()
    return seen


def test_a_tuple_of_one_stays_a_tuple(lib: Any) -> None:
    out = function(lib, lambda ctx, x: (x * 1,)).apply(leaf(lib))
    assert isinstance(out, tuple)
    assert out[0].grad_fn.name() == "MyBackward"


@pytest.mark.parametrize("kind", [list, lambda items: dict(enumerate(items))])
def test_only_tuples_are_looked_into(lib: Any, kind: Any) -> None:
    out = function(lib, lambda ctx, x: kind([x * 1, x * 2])).apply(leaf(lib))
    assert type(out) is type(kind([]))
    assert not out[0].requires_grad


def test_nested_structures_are_returned_as_they_are(lib: Any) -> None:
    first, rest = function(lib, lambda ctx, x: (x * 1, [x * 2])).apply(leaf(lib))
    assert first.requires_grad
    assert not rest[0].requires_grad


@pytest.mark.parametrize("value", [None, (), 5, "text"])
def test_outputs_need_not_be_tensors(lib: Any, value: Any) -> None:
    assert function(lib, lambda ctx, x: value).apply(leaf(lib)) == value


def test_no_tensor_among_the_arguments(lib: Any) -> None:
    out = function(lib, lambda ctx, x: x + 1).apply(4)
    assert out == 5


def test_outputs_that_are_no_tensors_get_none(lib: Any) -> None:
    assert seen_gradients(lib, lambda ctx, x: (x * 1, 5, None, "s")) == [
        [1, 1, 1],
        None,
        None,
        None,
    ]


def test_outputs_without_gradient_get_zeros(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        constant = x * 3
        ctx.mark_non_differentiable(constant)
        return x * 1, constant, x.long(), x * 2

    assert seen_gradients(lib, forward) == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_zeros_for_integer_outputs_have_their_dtype(lib: Any) -> None:
    dtypes: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        dtypes.extend(grad.dtype for grad in grads)
        return grads[0]

    out = function(lib, lambda ctx, x: (x * 1, x.long()), backward).apply(leaf(lib))
    out[0].sum().backward()
    assert dtypes == [lib.float32, lib.int64]


def test_materialize_non_diff_grads_off(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx._materialize_non_diff_grads = False
        constant = x * 3
        ctx.mark_non_differentiable(constant)
        return x * 1, constant, x.long(), x * 2

    assert seen_gradients(lib, forward) == [[1, 1, 1], None, None, [0, 0, 0]]


def test_materialize_grads_off(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 1, x * 2, x.long()

    assert seen_gradients(lib, forward) == [[1, 1, 1], None, None]


def test_set_materialize_grads_wants_a_bool(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(1)

    with pytest.raises(TypeError, match="set_materialize_grads received an invalid combination"):
        function(lib, forward).apply(leaf(lib))


def test_undefined_gradients_alone_do_not_stop_backward(lib: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(grad)

    x = leaf(lib)
    nothing = function(lib, lambda ctx, y: y * 1, lambda ctx, grad: None)
    nothing.apply(function(lib, forward, backward).apply(x)).sum().backward()
    assert seen == [None]
    assert x.grad is None


def test_the_same_tensor_twice_is_one_output(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 1
        return y, y

    grads: list[Any] = []

    def backward(ctx: Any, *given: Any) -> Any:
        grads.extend(grad.tolist() for grad in given)
        return given[1]

    x = leaf(lib)
    first, second = function(lib, forward, backward).apply(x)
    assert first is second
    assert first.output_nr == 1
    (first * 2 + second * 3).sum().backward()
    assert grads == [[0, 0, 0], [5, 5, 5]]


@pytest.mark.parametrize("nonleaf", [False, True])
def test_an_input_returned_as_it_is_becomes_a_view(lib: Any, nonleaf: bool) -> None:
    x = leaf(lib) * 1 if nonleaf else leaf(lib)
    before = x.grad_fn
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert y._is_view()
    assert y._base is x
    assert y.grad_fn.name() == "MyBackward"
    assert x.grad_fn is before
    (gradient,) = lib.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [5, 5, 5]


def test_an_input_returned_twice_becomes_two_views(lib: Any) -> None:
    first, second = function(lib, lambda ctx, x: (x, x)).apply(leaf(lib))
    assert first is not second
    assert (first.output_nr, second.output_nr) == (0, 1)


def test_an_input_returned_as_non_differentiable_is_detached(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(lib)
    y = function(lib, forward).apply(x)
    assert not y.requires_grad
    assert not y._is_view()
    assert x.requires_grad
    y.zero_()
    assert x.tolist() == [0, 0, 0]


def test_an_input_without_grad_returned_as_it_is_becomes_a_view(lib: Any) -> None:
    x = lib.ones(3)
    y = function(lib, lambda ctx, x: x).apply(x)
    assert y is not x
    assert y._is_view()
    assert y.grad_fn is None


def test_under_no_grad_a_leaf_returned_as_it_is_is_detached(lib: Any) -> None:
    x = leaf(lib)
    with lib.no_grad():
        y = function(lib, lambda ctx, x: x).apply(x)
    assert not y.requires_grad
    assert y is not x


def test_a_detached_input_gets_the_history(lib: Any) -> None:
    x = leaf(lib)
    y = function(lib, lambda ctx, x: x.detach(), lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_all_outputs_non_differentiable(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 1
        ctx.mark_non_differentiable(y)
        return y

    y = function(lib, forward).apply(leaf(lib))
    assert not y.requires_grad
    assert y.grad_fn is None


def test_view_as_is_asked_of_the_input_itself(lib: Any) -> None:
    class Sub(lib.Tensor):  # type: ignore[misc, name-defined]  # the class is known only now
        asked = 0

        def view_as(self, other: Any) -> Any:
            Sub.asked += 1
            return super().view_as(other)

    x = lib.ones(3)._make_subclass(Sub, lib.ones(3), True)
    function(lib, lambda ctx, x: x).apply(x)
    assert Sub.asked == 1


def test_duplicated_dirty_input_carries_the_last_number(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    x = leaf(lib) * 1
    first, second = function(lib, forward).apply(x)
    assert first is second is x
    assert x.output_nr == 1
