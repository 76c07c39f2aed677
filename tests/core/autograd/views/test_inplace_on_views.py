"""Recorded in-place operators on views and on their bases: values, gradients, the graph's shape."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import plugrad


def leaf(*values: float) -> Any:
    return plugrad.tensor(values or (1.0, 2.0, 3.0, 4.0), requires_grad=True)


def grad_of(output: Any, x: Any) -> Any:
    (grad,) = plugrad.autograd.grad(output, x)
    return grad.tolist()


def names(tensor: Any) -> list[str | None]:
    return [node and node.name() for node, _ in tensor.grad_fn.next_functions]


def test_a_write_to_a_view_is_one_into_its_base() -> None:
    x = leaf()
    base = x * 1
    view = base[:2]
    view.mul_(3)
    assert type(base.grad_fn).__name__ == "CopySlices"
    assert names(base)[0] == "MulBackward0"
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn.next_functions == ((base.grad_fn, 0),)
    assert grad_of(base.sum(), x) == [3.0, 3.0, 1.0, 1.0]


def test_the_view_itself_has_the_gradient_of_what_was_written() -> None:
    x = leaf()
    base = x * 1
    view = base.view(2, 2)[1]
    view.mul_(3)
    assert grad_of((view * view).sum(), x) == [0.0, 0.0, 54.0, 72.0]


def test_other_views_follow() -> None:
    x = leaf()
    base = x * 1
    view, other = base[:2], base[1:]
    view.mul_(3)
    assert other.tolist() == [6.0, 3.0, 4.0]
    assert grad_of(other.sum(), x) == [0.0, 3.0, 1.0, 1.0]


def test_a_view_follows_its_base() -> None:
    x = leaf()
    base = x * 1
    view = base.view(2, 2).t()
    former = view.grad_fn
    base.mul_(plugrad.tensor([2.0, 3.0, 4.0, 5.0]))
    assert former.name() == "TBackward0"
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.output_nr == 0
    assert grad_of(view[0].sum(), x) == [2.0, 0.0, 4.0, 0.0]


def test_an_expanded_view_follows_its_base() -> None:
    x = leaf()
    base = x * 1
    rows = base.expand(3, 4)[1:].t()
    base.mul_(2)
    assert grad_of(rows.sum(), x) == [4.0] * 4


def test_writes_in_no_grad_mode_change_elements_but_no_gradient() -> None:
    x = leaf()
    base = x * 1
    view = base[:2]
    with plugrad.no_grad():
        view.mul_(3)
    assert base.grad_fn.name() == "MulBackward0"
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert grad_of(view.sum(), x) == [1.0, 1.0, 0.0, 0.0]


def test_a_base_that_needs_no_grad_gets_the_gradient_of_what_is_written() -> None:
    x = leaf()
    base = plugrad.zeros(4)
    view = base[1:3]
    view.copy_(x[:2])
    assert base.requires_grad
    assert names(base) == [None, "SliceBackward0"]
    assert grad_of((base * base).sum(), x) == [2.0, 4.0, 0.0, 0.0]


def test_only_the_view_needs_grad() -> None:
    x = leaf()
    base = x * 1
    base[:2].mul_(plugrad.tensor([5.0, 6.0]))
    assert names(base)[1:] == [None]
    assert grad_of(base.sum(), x) == [5.0, 6.0, 1.0, 1.0]


def test_the_other_operand_may_be_a_view_of_the_same_base() -> None:
    x = leaf()
    base = x * 1
    base[:2].mul_(base[2:])
    assert base.tolist() == [3.0, 8.0, 3.0, 4.0]
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        base.sum().backward()
    again = x * 1
    again[:2].add_(again[2:])
    assert grad_of(again.sum(), x) == [1.0, 1.0, 2.0, 2.0]


def test_several_writes_to_views_of_views() -> None:
    x = leaf()
    base = x * 1
    square = base.view(2, 2)
    column = square[:, 0]
    column.mul_(2)
    square[1].add_(column.clone())
    column.mul_(square[0].detach().clone())
    out = (base * plugrad.tensor([1.0, 10.0, 100.0, 1000.0])).sum()
    # base is x0*2*2, x1, (x2*2 + x0*2)*2, x3 + x2*2 with the last factors detached
    assert base.tolist() == [4.0, 2.0, 16.0, 10.0]
    assert grad_of(out, x) == [2 * 2.0 + 100 * 4.0, 10.0, 100 * 4.0 + 1000 * 2.0, 1000.0]


def test_assigning_items_is_a_write_to_a_view() -> None:
    x = leaf()
    base = plugrad.zeros(2, 4)
    base[0] = x
    base[1, ::2] = x[:2] * 3
    assert type(base.grad_fn).__name__ == "CopySlices"
    assert grad_of(base.sum(), x) == [4.0, 4.0, 1.0, 1.0]


def test_a_view_by_strides_of_a_base_that_is_not_contiguous() -> None:
    x = plugrad.arange(6.0).view(2, 3).requires_grad_()
    memory = plugrad.zeros(16)
    base = memory[2:14].view(2, 6)[:, ::2].detach()
    base.copy_(x)
    view = base.as_strided((2,), (2,), base.storage_offset() + 2)
    view.mul_(5)
    weights = plugrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert base.tolist() == [[0.0, 5.0, 10.0], [3.0, 4.0, 5.0]]
    both = (base * weights).sum() + 100 * view.sum()
    assert grad_of(both, x) == [[1.0, 510.0, 515.0], [4.0, 5.0, 6.0]]


def test_real_parts_of_a_complex_base() -> None:
    x = leaf()
    base = x * plugrad.tensor(1 + 1j)
    base.real.mul_(3)
    assert base.tolist()[0] == 3 + 1j
    assert grad_of(base.real.sum() + base.imag.sum(), x) == [4.0] * 4


def test_integer_views_share_the_version_and_no_gradient() -> None:
    base = plugrad.zeros(4, dtype=plugrad.int64)
    view = base[:2]
    view.copy_(leaf()[:2])
    assert not base.requires_grad
    assert (view._is_view(), base._version) == (True, 1)


def test_backward_may_run_twice_if_the_graph_is_retained() -> None:
    x = leaf()
    base = x * 1
    base[:2].mul_(x[2:])
    out = base.sum()
    out.backward(retain_graph=True)
    out.backward()
    assert x.grad.tolist() == [6.0, 8.0, 4.0, 6.0]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_a_freed_write_is_an_error_even_if_it_saved_nothing() -> None:
    base = leaf() * 1
    base[:2].add_(1)
    base.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        base.sum().backward()


def test_double_backward_passes_through_writes() -> None:
    x, w = leaf(), plugrad.tensor([5.0, 7.0], requires_grad=True)
    base = x * x
    base[:2].mul_(w)
    (grad,) = plugrad.autograd.grad((base * base).sum(), x, create_graph=True)
    # (w x^2)^2: first derivative 4 w^2 x^3, then 12 w^2 x^2 and 8 w x^3
    assert grad.tolist() == [4 * 25.0, 4 * 49 * 8.0, 108.0, 256.0]
    second, mixed = plugrad.autograd.grad(grad.sum(), [x, w])
    assert second.tolist() == [12 * 25.0, 12 * 49 * 4.0, 108.0, 192.0]
    assert mixed.tolist() == [8 * 5.0, 8 * 7 * 8.0]


class WithoutGradient(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        return a.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


def test_no_gradient_into_a_write_means_none_out_of_it() -> None:
    x, w = leaf(), leaf()
    base = x * 1
    base[:2].mul_(w[:2])
    out = WithoutGradient.apply(base).sum()
    assert plugrad.autograd.grad(out, [x, w], allow_unused=True) == (None, None)


def test_a_function_that_wrote_to_a_view_may_have_no_gradient() -> None:
    class Zeroed(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a)
            return a.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    x = leaf()
    base = x * 1
    Zeroed.apply(base[:2])
    assert plugrad.autograd.grad(base.sum(), x, allow_unused=True) == (None,)


def test_a_base_whose_view_was_written_to_is_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        base = leaf() * 1
        view = base[:2]
        view.mul_(3)
        gone = [weakref.ref(base), weakref.ref(view)]
        del base, view
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.strided  # results of operators are contiguous there for any layout of the operands
@pytest.mark.parametrize("turned", [False, True])
def test_views_that_need_the_strides_of_their_base(turned: bool) -> None:
    x = plugrad.ones(2, 3, requires_grad=True)
    base = x.t() * 1 if turned else x * 1
    view = (base.t() if turned else base).view(-1)
    view.mul_(2)
    weights = plugrad.arange(6.0).view(3, 2)
    out = (base * weights) if turned else (base.t() * weights)
    assert grad_of(out.sum(), x) == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]
