"""The graph that forward builds: nodes, edges, numbers."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import plugrad
from plugrad.graph.history import collect_next_edges, gradient_edge
from plugrad.graph.node import NO_EDGE, Edge, Node


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def node_of(tensor: Any, index: int = 0) -> Any:
    """The node that gets the gradient of an argument of the operation that made `tensor`."""
    return tensor.grad_fn.next_functions[index][0]


def test_an_operation_makes_a_node_with_one_edge_per_argument() -> None:
    x, y = leaf(), leaf()
    z = x * y
    assert z.grad_fn.name() == "MulBackward0"
    assert [number for _, number in z.grad_fn.next_functions] == [0, 0]
    assert [node.variable for node, _ in z.grad_fn.next_functions] == [x, y] or (
        node_of(z, 0).variable is x and node_of(z, 1).variable is y
    )


def test_an_edge_to_a_result_points_to_its_node() -> None:
    y = leaf() * 2
    assert node_of(y.exp()) is y.grad_fn


def test_an_edge_names_the_output_of_the_node_it_points_to() -> None:
    first, second = (leaf() * 1).unbind(0)
    assert first.grad_fn is second.grad_fn
    assert (second * 1).grad_fn.next_functions[0] == (second.grad_fn, 1)
    assert second.output_nr == 1


def test_arguments_without_gradient_have_the_empty_edge() -> None:
    z = leaf() * plugrad.ones(2, dtype=plugrad.float64)
    assert z.grad_fn.next_functions[1] == (None, 0)
    assert gradient_edge(plugrad.ones(2)) is NO_EDGE
    assert not NO_EDGE.is_valid()


def test_gradient_edge_of_a_leaf_is_its_accumulator() -> None:
    x = leaf()
    y = x * 1
    edge = gradient_edge(x)
    assert edge.function is node_of(y)
    assert edge.input_nr == 0


def test_collect_next_edges_keeps_order_and_gaps() -> None:
    x = leaf()
    y = x * 1
    edges = collect_next_edges([y, None, plugrad.ones(1), x])
    assert [edge.function for edge in edges] == [y.grad_fn, None, None, node_of(y)]


def test_a_leaf_has_one_accumulator_while_a_graph_uses_it() -> None:
    x = leaf()
    a, b = x * 2, x.exp()
    assert node_of(a) is node_of(b)


def test_a_leaf_holds_its_accumulator_weakly() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        y = x * 2
        gone = weakref.ref(node_of(y))
        assert gone() is not None
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_the_accumulator_keeps_its_leaf_alive() -> None:
    x = leaf()
    alive = weakref.ref(x)
    y = (x * 2).sum()
    del x
    assert alive() is not None
    y.backward()
    found = alive()
    assert found is not None
    assert found.grad.tolist() == [2.0, 2.0]


def test_a_new_accumulator_still_accumulates_into_the_leaf() -> None:
    x = leaf(1.0)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_sequence_numbers_grow_with_every_node() -> None:
    x = leaf()
    numbers = []
    y = x
    for _ in range(5):
        y = y * 2
        numbers.append(y.grad_fn._sequence_nr())
    assert numbers == list(range(numbers[0], numbers[0] + 5))


def test_operations_that_record_nothing_take_no_number() -> None:
    x = leaf()
    first = (x * 2).grad_fn._sequence_nr()
    with plugrad.no_grad():
        x * 2
    plugrad.ones(2) * 2
    assert (x * 2).grad_fn._sequence_nr() == first + 1


def test_sequence_numbers_belong_to_the_thread() -> None:
    x = leaf()
    before = (x * 2).grad_fn._sequence_nr()
    elsewhere: list[int] = []

    def work() -> None:
        y = x
        for _ in range(3):
            y = y * 2
            elsewhere.append(y.grad_fn._sequence_nr())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert elsewhere == [0, 1, 2]
    assert (x * 2).grad_fn._sequence_nr() == before + 1


def test_an_accumulator_has_the_greatest_sequence_number() -> None:
    # Held: nothing else keeps the accumulator of a leaf alive.
    y = leaf() * 2
    accumulator = y.grad_fn.next_functions[0][0]
    assert accumulator._sequence_nr() == 2**64 - 1


def test_topological_number_is_the_longest_way_to_a_leaf() -> None:
    x = leaf()
    a = x * 2
    b = a.exp().sin()
    c = a + b
    assert node_of(a)._topological_nr == 0
    assert [t.grad_fn._topological_nr for t in (a, b, c)] == [1, 3, 4]


def test_a_node_without_edges_has_topological_number_zero() -> None:
    assert Node(0)._topological_nr == 0


def test_edges_may_not_change_once_the_node_has_a_parent() -> None:
    y = leaf() * 2
    assert not y.grad_fn._has_parent
    y.grad_fn._set_next_edges(y.grad_fn._next_edges)
    z = y.exp()
    assert y.grad_fn._has_parent
    with pytest.raises(RuntimeError, match=r"MulBackward0.*edges cannot change"):
        y.grad_fn._set_next_edges(z.grad_fn._next_edges)
    with pytest.raises(RuntimeError, match="edges cannot change"):
        y.grad_fn._add_next_edge(Edge(z.grad_fn, 0))


def test_add_next_edge_raises_the_topological_number() -> None:
    node, y = Node(0), leaf() * 2
    node._add_next_edge(Edge(y.grad_fn, 0))
    assert node._topological_nr == 2
    assert node.next_functions == ((y.grad_fn, 0),)


def test_input_metadata_describes_the_outputs() -> None:
    node = (leaf() * plugrad.ones(3, 1)).grad_fn
    assert node._num_inputs() == 1
    metadata = node._metadata_of_input(0)
    assert tuple(metadata.shape) == (3, 2)
    assert metadata.dtype is plugrad.float64
    assert (leaf(1.0, 2.0, 3.0) * 1).unbind(0)[0].grad_fn._num_inputs() == 3


def test_should_compute_output_tells_which_arguments_require_grad() -> None:
    node = (leaf() * plugrad.ones(2, dtype=plugrad.float64)).grad_fn
    assert node._should_compute_output(0)
    assert not node._should_compute_output(1)


def test_unneeded_gradients_are_not_computed() -> None:
    x, constant = leaf(), plugrad.ones(2, dtype=plugrad.float64)

    def products(y: Any) -> int:
        with plugrad.record_dispatch_trace() as events:
            y.backward(plugrad.ones(2, dtype=plugrad.float64))
        calls = [event for event in events if event.kind == "call"]
        return sum(event.op == "plugrad::mul.Tensor" for event in calls)

    assert products(x * constant) == 1
    assert products(x * leaf()) == 2


def test_integer_outputs_have_no_history() -> None:
    values, indices = leaf(1.0, 2.0).max(dim=0)
    assert values.grad_fn is not None
    assert indices.grad_fn is None
    assert leaf().argmax().grad_fn is None


def test_a_node_has_a_dictionary_for_the_user() -> None:
    node = (leaf() * 2).grad_fn
    assert node.metadata == {}
    node.metadata["key"] = 1
    assert node.metadata == {"key": 1}


def test_views_have_nodes_too() -> None:
    y = (leaf() * 1).view(2, 1)
    assert y.grad_fn.name() == "ViewBackward0"
    assert y._is_view()


def test_grad_fn_of_leaves_and_constants_is_none() -> None:
    assert leaf().grad_fn is None
    assert (plugrad.ones(2) * 2).grad_fn is None


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x + 1, "AddBackward0"),
        (lambda x: x - 1, "SubBackward0"),
        (lambda x: x / 2, "DivBackward0"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: -x, "NegBackward0"),
        (lambda x: x @ x, "DotBackward0"),
        (lambda x: x[0], "SelectBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
        (lambda x: x.log1p(), "Log1PBackward0"),
        (lambda x: plugrad.fft.rfft(x), "FftR2CBackward0"),
    ],
)
def test_nodes_are_named_as_in_pytorch(make: Any, name: str) -> None:
    y = make(leaf())
    assert y.grad_fn.name() == name
    assert repr(y.grad_fn).startswith(f"<{name} object at")
    assert f"grad_fn=<{name}>" in repr(y)
