"""`Function.jvp`: what it gets and may return; on plugrad and on PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def fw(lib: Any) -> Iterator[Any]:
    module = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    with module.dual_level():
        yield module


def function(lib: Any, jvp: Any, forward: Any = None, **members: Any) -> Any:
    """A Function of these static methods; doubles its argument if there is no other forward."""
    members["forward"] = staticmethod(forward or (lambda ctx, x, *rest: x * 2))
    members["jvp"] = staticmethod(jvp)
    return type(lib.autograd.Function)("My", (lib.autograd.Function,), members).apply


def dual(lib: Any, fw: Any, **options: Any) -> Any:
    return fw.make_dual(lib.tensor([1.0, 2.0], **options), lib.tensor([3.0, 4.0]))


def tangent(fw: Any, tensor: Any) -> Any:
    found = fw.unpack_dual(tensor).tangent
    return None if found is None else found.tolist()


def test_jvp_gives_the_tangent(lib: Any, fw: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, y: Any, n: int) -> Any:
        seen.append((fw._is_fwd_grad_enabled(), fw.unpack_dual(x).tangent))
        ctx.save_for_forward(x, y)
        return x * y * n

    def jvp(ctx: Any, x_t: Any, y_t: Any, n_t: None) -> Any:
        x, y = ctx.saved_tensors
        seen.append((fw._is_fwd_grad_enabled(), lib.is_grad_enabled(), n_t, y_t.tolist()))
        return (x_t * y + x * y_t) * 5

    y = lib.tensor([10.0, 20.0])
    out = function(lib, jvp, forward)(dual(lib, fw), y, 5)
    assert tangent(fw, out) == [150.0, 400.0]
    assert seen == [(False, None), (False, True, None, [0.0, 0.0])]


def test_without_dual_tensors_jvp_is_not_called(lib: Any, fw: Any) -> None:
    def jvp(ctx: Any, t: Any) -> Any:
        raise AssertionError

    assert tangent(fw, function(lib, jvp)(lib.ones(2))) is None


def test_zeros_need_not_be_made(lib: Any, fw: Any) -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x + y

    def jvp(ctx: Any, x_t: Any, y_t: Any) -> Any:
        assert y_t is None
        return x_t.clone()

    assert tangent(fw, function(lib, jvp, forward)(dual(lib, fw), lib.ones(2))) == [3.0, 4.0]


def test_what_is_saved_for_backward_is_not_for_jvp(lib: Any, fw: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def jvp(ctx: Any, t: Any) -> Any:
        assert ctx.saved_tensors == ()
        return t * 2

    assert tangent(fw, function(lib, jvp, forward)(dual(lib, fw))) == [6.0, 8.0]


def test_setup_context(lib: Any, fw: Any) -> None:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        assert not fw._is_fwd_grad_enabled()
        ctx.save_for_forward(*inputs, output)

    def jvp(ctx: Any, t: Any) -> Any:
        x, output = ctx.saved_tensors
        assert output.tolist() == [1.0, 4.0]
        assert tangent(fw, x) is None
        return 2 * x * t

    apply = function(lib, jvp, lambda x: x * x, setup_context=staticmethod(setup_context))
    assert tangent(fw, apply(dual(lib, fw))) == [6.0, 16.0]


def test_the_tangent_is_recorded(lib: Any, fw: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        return x**3

    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    out = function(lib, jvp, forward)(fw.make_dual(x, lib.tensor([3.0, 4.0])))
    (second,) = lib.autograd.grad(fw.unpack_dual(out).tangent.sum(), x)
    assert second.tolist() == [18.0, 48.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("two", r"^Function's jvp returned an invalid number of forward gradients \(expected 1 bu"),
        ("number", r"^expected Variable or None \(got int\) for grad output 0\.$"),
        ("none", r"Expected both tensor and its forward grad to be floating point or complex"),
        ("integers", r"Expected both tensor and its forward grad to be floating point or complex"),
        ("shape", r"^Trying to set a forward gradient that has a different size than that of the"),
    ],
)
def test_what_jvp_cannot_return(lib: Any, fw: Any, returned: str, message: str) -> None:
    def jvp(ctx: Any, t: Any) -> Any:
        known = {
            "two": (t, t),
            "number": 3,
            "none": None,
            "integers": lib.ones(2, dtype=lib.int64),
            "shape": lib.ones(3),
        }
        return known[returned]

    with pytest.raises(RuntimeError, match=message):
        function(lib, jvp)(dual(lib, fw))


def test_a_function_without_jvp(lib: Any, fw: Any) -> None:
    apply = function(lib, lib.autograd.Function.jvp)
    with pytest.raises(
        NotImplementedError, match=r"^You must implement the jvp function for custo"
    ):
        apply(dual(lib, fw))


@pytest.mark.parametrize("mark", [True, False])
def test_outputs_without_gradient_take_none(lib: Any, fw: Any, mark: bool) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        constant = x * 3 if mark else x > 0
        if mark:
            ctx.mark_non_differentiable(constant)
        return x * 2, constant

    apply = function(lib, lambda ctx, t: (t * 2, None), forward)
    first, second = apply(dual(lib, fw))
    assert (tangent(fw, first), tangent(fw, second)) == ([6.0, 8.0], None)
    with pytest.raises(
        RuntimeError, match=r"^Function's jvp returned a gradient at position 1, bu"
    ):
        function(lib, lambda ctx, t: (t * 2, t), forward)(dual(lib, fw))


NOT_IN_PLACE = r"^An inplace custom Function is not modifying the forward mode gradients inplace\."
NOT_A_VIEW = r"^A custom Function's forward is returning a view \(or an input as-is\) but the jvp i"


def test_a_write_must_write_to_the_tangent(lib: Any, fw: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]))
    out = function(lib, lambda ctx, t: t.mul_(2), forward)(x)
    assert out is x
    assert tangent(fw, x) == [6.0, 8.0]
    for wrong in (lambda ctx, t: t * 2, lambda ctx, t: t, lambda ctx, t: None):
        with pytest.raises(RuntimeError, match=NOT_IN_PLACE):
            function(lib, wrong, forward)(dual(lib, fw))


def test_what_is_no_tensor_has_no_tangent(lib: Any, fw: Any) -> None:
    for returned in (None, "same"):
        apply = function(
            lib, lambda ctx, t, given=returned: (t * 2, given and t), lambda ctx, x: (x * 2, "word")
        )
        first, second = apply(dual(lib, fw))
        assert (tangent(fw, first), second) == ([6.0, 8.0], "word")
    as_list = function(lib, lambda ctx, t: t, lambda ctx, x: [x * 2])(dual(lib, fw))
    assert tangent(fw, as_list[0]) is None


def test_the_tangent_of_a_view_is_a_view_of_the_same(lib: Any, fw: Any) -> None:
    apply = function(lib, lambda ctx, t: lib.zeros(4)[:2], lambda ctx, x: x[:])
    with pytest.raises(RuntimeError, match="is not returning a view of the given grad input"):
        apply(dual(lib, fw))


def test_a_write_to_what_had_no_tangent(lib: Any, fw: Any) -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(y)

    x = lib.tensor([1.0, 2.0])
    out = function(lib, lambda ctx, x_t, y_t: y_t * 1, forward)(x, dual(lib, fw))
    assert out is x
    assert tangent(fw, x) == [3.0, 4.0]


@pytest.mark.parametrize("as_is", [True, False])
def test_the_tangent_of_a_view_must_be_a_view(lib: Any, fw: Any, as_is: bool) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        return x if as_is else x.view(2, 1)

    def right(ctx: Any, t: Any) -> Any:
        return t.view_as(t) if as_is else t.view(2, 1)

    out = function(lib, right, forward)(dual(lib, fw))
    assert tangent(fw, out) == ([3.0, 4.0] if as_is else [[3.0], [4.0]])
    for wrong in (lambda ctx, t: t, lambda ctx, t: right(ctx, t).clone()):
        with pytest.raises(RuntimeError, match=NOT_A_VIEW):
            function(lib, wrong, forward)(dual(lib, fw))
