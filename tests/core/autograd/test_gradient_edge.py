"""GradientEdge: a place in the graph, in place of the tensor there."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import plugrad
from plugrad.autograd.graph import GradientEdge, Node, get_gradient_edge


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def grad(*args: Any, **kwargs: Any) -> list[Any]:
    return [g.tolist() for g in plugrad.autograd.grad(*args, **kwargs)]


def test_an_edge_is_a_named_tuple_of_node_and_output_number() -> None:
    parts = (leaf() * 1).unbind(0)
    node, output_nr, token = get_gradient_edge(parts[1])
    assert node is parts[1].grad_fn
    assert output_nr == 1
    assert token is None


def test_the_edge_of_a_leaf_leads_to_its_accumulator() -> None:
    x = leaf()
    edge = get_gradient_edge(x)
    assert edge == GradientEdge((x * 2).grad_fn.next_functions[0][0], 0)
    assert edge.node.variable is x


def test_a_constant_has_no_edge() -> None:
    with pytest.raises(
        RuntimeError,
        match="It is not possible to get the gradient edge for a Tensor that does not require",
    ):
        get_gradient_edge(plugrad.ones(1))


def test_an_edge_keeps_the_graph_but_not_the_tensor() -> None:
    gc.disable()
    try:
        x = leaf(3.0)
        y = x * x
        edge = get_gradient_edge(y)
        gone = weakref.ref(y)
        del y
        assert gone() is None
        assert grad(edge, x, plugrad.ones(1, dtype=plugrad.float64)) == [[6.0]]
    finally:
        gc.enable()


def test_an_edge_of_a_custom_function_keeps_its_node() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

    x = leaf(3.0)
    edge = get_gradient_edge(Double.apply(x))
    assert grad(edge, x, plugrad.ones(1, dtype=plugrad.float64)) == [[2.0]]


def test_grad_takes_edges_as_inputs() -> None:
    x = leaf(3.0)
    y = x * x
    assert grad((y * 2).sum(), [get_gradient_edge(y), get_gradient_edge(x)]) == [[2.0], [12.0]]


def test_grad_takes_edges_and_tensors_together() -> None:
    x = leaf(3.0)
    y = x * x
    s = (y * 2).sum()
    weight = plugrad.ones(1, dtype=plugrad.float64)
    found = grad([get_gradient_edge(s), y], [x, get_gradient_edge(y)], [None, weight])
    assert found == [[18.0], [3.0]]


def test_backward_from_an_edge_fills_the_leaves() -> None:
    x = leaf(3.0)
    plugrad.autograd.backward(get_gradient_edge((x * x).sum()))
    assert x.grad.tolist() == [6.0]


def test_backward_into_the_edge_of_a_leaf() -> None:
    x, w = leaf(3.0), leaf(4.0)
    s = (x * w).sum()
    s.backward(inputs=get_gradient_edge(x))
    assert x.grad.tolist() == [4.0]
    assert w.grad is None


def test_backward_into_the_edge_of_a_result_retains_nothing() -> None:
    x = leaf(3.0)
    y = x * x
    y.sum().backward(inputs=[get_gradient_edge(y)])
    assert not y.retains_grad
    assert x.grad is None


def test_an_edge_as_output_is_checked_like_its_tensor() -> None:
    x = leaf()
    edge = get_gradient_edge(x * x)
    with pytest.raises(RuntimeError, match="can be implicitly created only for scalar outputs"):
        plugrad.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\]"):
        plugrad.autograd.grad(edge, x, plugrad.ones(3))
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output"):
        plugrad.autograd.grad(edge, x, plugrad.ones(2, dtype=plugrad.complex128))


def test_an_implicit_gradient_has_the_dtype_of_the_edge() -> None:
    x = plugrad.ones(1, 1, dtype=plugrad.float64, requires_grad=True)
    (g,) = plugrad.autograd.grad(get_gradient_edge(x * x), x)
    assert g.dtype is plugrad.float64
    assert g.tolist() == [[2.0]]


def test_an_unused_edge_is_an_error_unless_allowed() -> None:
    x, unused = leaf(), leaf()
    s = (x * x).sum()
    edge = get_gradient_edge(unused)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        plugrad.autograd.grad(s, edge, retain_graph=True)
    assert plugrad.autograd.grad(s, edge, allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(
        RuntimeError,
        match="materialize_grads cannot be used when the given input is a GradientEdge",
    ):
        plugrad.autograd.grad(s, edge, materialize_grads=True)


def test_an_edge_to_an_output_that_the_node_does_not_have_is_refused() -> None:
    x = leaf()
    s = (x * x).sum()
    with pytest.raises(IndexError):
        plugrad.autograd.grad(s, GradientEdge(s.grad_fn, 1))
    with pytest.raises(IndexError):
        plugrad.autograd.grad(GradientEdge(s.grad_fn, 1), x, plugrad.ones(()))


def test_the_edge_of_a_view_follows_in_place_writes_to_its_base() -> None:
    x = leaf()
    base = x * 1
    view = base[0]
    base.mul_(5)
    assert get_gradient_edge(view).node is view.grad_fn
    assert grad(get_gradient_edge(view), x) == [[5.0, 0.0]]


def test_every_grad_fn_is_a_node() -> None:
    x = leaf()
    y = x.exp()
    assert isinstance(y.grad_fn, Node)
    assert issubclass(type(y.grad_fn), Node)
    assert isinstance(y.grad_fn.next_functions[0][0], Node)


def test_the_context_of_a_custom_function_is_a_node() -> None:
    class Same(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    assert isinstance(Same.apply(leaf()).grad_fn, Node)


def test_other_things_are_no_nodes() -> None:
    assert not isinstance(None, Node)
    assert not isinstance(leaf(), Node)
    assert not isinstance(Node, Node)
    assert issubclass(Node, Node)
    assert not issubclass(int, Node)


def test_node_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Node()  # type: ignore[abstract]  # what is tested


def test_increment_version_counts_a_write() -> None:
    x, y = plugrad.ones(1), plugrad.ones(1)
    plugrad.autograd.graph.increment_version(x)
    plugrad.autograd.graph.increment_version(iter([x, y]))
    assert (x._version, y._version) == (2, 1)


def test_increment_version_makes_backward_notice() -> None:
    x = leaf()
    y = x * 1
    z = (y * y).sum()
    plugrad.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_increment_version_takes_only_tensors() -> None:
    increment: Any = plugrad.autograd.graph.increment_version
    with pytest.raises(RuntimeError, match=r"expect a Iterable\[Tensor\] as input"):
        increment(1)
    with pytest.raises(RuntimeError, match="expects each element of the iterable to be a tensor"):
        increment([1])


def test_increment_version_leaves_inference_tensors_alone() -> None:
    with plugrad.inference_mode():
        x = plugrad.ones(1)
    y = plugrad.ones(1)
    plugrad.autograd.graph.increment_version(x)
    plugrad.autograd.graph.increment_version([x, y])
    assert y._version == 1
