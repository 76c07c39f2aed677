"""Corners that random programs found: each behaves as PyTorch's, which runs the same test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest


def test_tensor_hooks_of_a_single_root_run_even_if_no_input_is_reached(lib: Any) -> None:
    seen = []
    x, other = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    y = x.sin()
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_hook(lambda *grads: seen.append("node"))
    (grad,) = lib.autograd.grad([y], [other], [lib.ones(2)], allow_unused=True)
    assert grad is None
    assert seen == ["tensor"]


def test_hooks_of_several_roots_do_not_run_if_no_input_is_reached(lib: Any) -> None:
    seen = []
    x, other = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    y = x.sin()
    y.register_hook(lambda grad: seen.append("tensor"))
    lib.autograd.grad([y, y], [other], [lib.ones(2)] * 2, allow_unused=True)
    assert seen == []


def test_integer_outputs_are_no_inputs_of_the_node(lib: Any) -> None:
    seen = []
    x = lib.tensor([[1.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    values.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    values.sum().backward()
    assert seen == [1]
    assert not indices.requires_grad


def test_node_hooks_see_gradients_that_fit_the_inputs(lib: Any) -> None:
    seen = []
    x = lib.ones(3, requires_grad=True)
    y = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
    z = x + y
    z.grad_fn.register_hook(lambda ins, outs: seen.extend((tuple(g.shape), g.dtype) for g in ins))
    z.sum().backward()
    assert seen == [((3,), lib.float32), ((2, 3), lib.float64)]


def test_a_node_whose_gradient_was_refused_is_not_freed(lib: Any) -> None:
    class Twice(lib.autograd.Function):  # type: ignore[misc, name-defined]
        shape = (5,)

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return lib.ones(Twice.shape) * x.sum()

    x = lib.ones(3, requires_grad=True)
    y = Twice.apply(x)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        y.backward(lib.ones(3))
    Twice.shape = (3,)
    y.backward(lib.ones(3))
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("change", ["detach_", "requires_grad_"])
def test_post_accumulate_hooks_run_where_nothing_is_accumulated(lib: Any, change: str) -> None:
    seen: list[Any] = []
    x = lib.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
    y = x * 2.0
    if change == "detach_":
        x.detach_()
    else:
        x.requires_grad_(False)
    y.sum().backward()
    assert seen == [None]


def test_a_function_may_use_what_it_saved_though_it_was_detached(lib: Any) -> None:
    class Product(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    leaf = lib.ones(2, requires_grad=True)
    x, y = leaf * 2.0, leaf * 3.0
    z = Product.apply(x, y)
    x.detach_()
    z.sum().backward()
    assert leaf.grad.tolist() == [12.0, 12.0]


@pytest.mark.parametrize("statement", ["x[...] = 0.5", "x[:2] = 0.5", "x.fill_(lib.tensor(2.0))"])
def test_expanded_tensors_are_not_assigned_to(lib: Any, statement: str) -> None:
    x = lib.ones(()).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        exec(statement, {"lib": lib, "x": x})


def test_a_view_of_a_leaf_made_in_no_grad_mode_has_no_gradient_edge(lib: Any) -> None:
    leaf = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        view = leaf.view(2)
    assert view.requires_grad
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        lib.autograd.graph.get_gradient_edge(view)
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        lib.autograd.graph.register_multi_grad_hook((view,), print)


def test_a_node_does_not_compute_what_no_input_wants(lib: Any) -> None:
    seen = []
    x = lib.ones(2, requires_grad=True)
    y = x.sin()
    y.grad_fn.register_hook(lambda ins, outs: seen.append(ins))
    lib.autograd.backward([y, y], [lib.ones(2)] * 2, inputs=[y])
    assert seen == [(None,)]
    assert x.grad is None


def test_a_stale_view_that_cannot_follow_its_base_does_not_retain_its_gradient(lib: Any) -> None:
    base, factor = lib.ones(3), lib.ones(3, requires_grad=True)
    with lib.no_grad():
        view = base.view(3)
    base.mul_(factor)
    view.retain_grad()
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.grad_fn  # noqa: B018  # the access raises


def test_a_view_of_a_leaf_is_refused_before_its_memory_is_looked_at(lib: Any) -> None:
    view = lib.ones(1, requires_grad=True).expand(3)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view[...] = 0.5


def test_a_stale_view_that_retains_its_gradient_may_be_asked_again(lib: Any) -> None:
    leaf = lib.ones(2, requires_grad=True)
    view, _ = leaf.chunk(2)
    view.retain_grad()
    with lib.no_grad():
        leaf[0] = 0.5
    view.retain_grad()
    assert view.retains_grad


def test_results_that_no_formula_takes_a_gradient_of_require_none(lib: Any) -> None:
    seen = []
    x = lib.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
    name = "plugrad" if lib.__name__ == "plugrad" else "aten"
    results = getattr(lib.ops, name).native_layer_norm(x, (3,), None, None, 1e-5)
    assert [result.requires_grad for result in results] == [True, False, False]
    results[0].grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    results[0].grad_fn.register_hook(lambda ins, outs: seen.append(len(outs)))
    results[0].sum().backward()
    assert seen == [1, 1]


def test_node_hooks_see_the_gradients_of_all_tensors_of_a_list(lib: Any) -> None:
    seen = []
    x, constant = lib.ones(2, requires_grad=True), lib.ones(2)
    for y in (lib.stack([x, constant]), lib.cat([constant, x])):
        y.grad_fn.register_hook(lambda ins, outs: seen.append([g is not None for g in ins]))
        y.sum().backward()
    assert seen == [[True, True]] * 2
    assert constant.grad is None


def test_a_further_hook_does_not_ask_whether_a_view_is_valid(lib: Any) -> None:
    first, _ = (lib.ones(2, requires_grad=True) * 1).unbind(0)
    handle = first.register_hook(lambda grad: None)
    first.detach().add_(1)
    first.register_hook(lambda grad: None).remove()
    handle.remove()
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base"):
        first.grad_fn  # noqa: B018  # asks


def test_results_that_are_overwritten_are_not_what_the_gradient_reads(lib: Any) -> None:
    def reduce(x: Any, how: str) -> Any:
        return x[0].scatter_reduce(0, lib.tensor(0), x[1], how)

    operators = {
        "solve": lambda x: lib.linalg.solve(lib.stack([x, x.flip(0)]), x),
        "scatter_reduce, prod": lambda x: reduce(x, "prod"),
        "scatter_reduce, amax": lambda x: reduce(x, "amax"),
    }
    for name, operator in operators.items():
        grads = []
        for written in (False, True):
            x = lib.tensor([3.0, 1.0], requires_grad=True)
            result = operator(x)
            if written:
                result.detach().zero_()
            with suppress(RuntimeError):  # it was modified by an inplace operation
                result.sum().backward()
                grads.append(x.grad.tolist())
        assert grads, name
        assert all(grad == grads[0] for grad in grads), name


def test_indices_that_are_overwritten_do_not_lead_the_gradient_elsewhere(lib: Any) -> None:
    operators = {
        "kthvalue": lambda x: x.kthvalue(1, 0),
        "kthvalue, kept": lambda x: x.kthvalue(1, 0, keepdim=True),
        "max": lambda x: x.max(0),
        "median": lambda x: x.median(0),
        "sort": lambda x: x.sort(0),
        "topk": lambda x: x.topk(1),
        "cummax": lambda x: x.cummax(0),
    }
    for name, operator in operators.items():
        grads = []
        for written in (False, True):
            x = lib.tensor([3.0, 1.0, 2.0], requires_grad=True)
            values, indices = operator(x)
            if written:
                indices.zero_()
            with suppress(RuntimeError):  # it was modified by an inplace operation
                values.sum().backward()
                grads.append(x.grad.tolist())
        assert grads, name
        assert all(grad == grads[0] for grad in grads), name


def test_data_of_what_repeats_its_elements_is_not_written_to(lib: Any) -> None:
    data = lib.ones(3, requires_grad=True).as_strided((2,), (0,)).data
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        data.add_(lib.ones(2))


def test_integers_are_written_to_whatever_the_source_was_a_view_of(lib: Any) -> None:
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) * 2
    _, second = x.unbind(0)
    x.neg_()
    found = lib.zeros(2, dtype=lib.int64)
    found.copy_(second)
    assert found.tolist() == [-6, -8]
    assert not found.requires_grad


def test_a_leaf_that_was_given_a_dimension_lays_out_its_gradient(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    with lib.inference_mode():
        x.unsqueeze_(0)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_a_view_that_was_given_other_data_writes_where_its_steps_lead(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    view = y[1::2]
    view.data = lib.tensor([5.0, 6.0])
    view.mul_(view.detach().clone())
    lib.autograd.backward([view, y], [lib.ones(2), lib.tensor([1.0, 2.0, 3.0, 4.0])])
    assert x.grad.tolist() == [10.0, 18.0, 3.0, 4.0]


def test_a_view_that_was_given_more_data_than_its_base_has_stays_a_view(lib: Any) -> None:
    x = lib.ones(1, requires_grad=True)
    y = x * 1
    view = y.expand(3)
    view.data = lib.zeros(3)
    y.neg_()
    assert (view.is_leaf, view.requires_grad, view.tolist()) == (False, True, [0.0, 0.0, 0.0])
    view.sum().backward()
    assert x.grad is not None


def test_the_gradient_of_one_factor_passes_through(lib: Any) -> None:
    x = lib.tensor([3.0], requires_grad=True)
    (grad,) = lib.autograd.grad(x.cumprod(0), x, lib.ones(1), create_graph=True)
    assert not grad.requires_grad


def test_a_stale_view_among_the_inputs_of_backward_retains_its_gradient(lib: Any) -> None:
    base = lib.ones(2, 3)
    view = base.t()
    view[1:] = lib.ones(1, requires_grad=True) * 2
    (lib.ones(2, requires_grad=True) * 3).sum().backward(inputs=[view])
    assert view.retains_grad
