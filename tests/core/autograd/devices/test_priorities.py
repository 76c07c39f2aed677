"""In which order a device's thread takes what is ready, and what is left out of a pass."""

from __future__ import annotations

import random
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.dispatch.local_state import Snapshot, current_state
from plugrad.graph.node import MAX_SEQUENCE_NR, Node, observe_node_creation
from tests.core.autograd.devices.graphs import Notes, leaf, then
from tests.core.autograd.devices.toy import ToyBackend

PLACES = ["cpu", "toy:0"]


def graph_task(depth: int) -> GraphTask:
    return GraphTask(False, False, depth, Snapshot(current_state()), ReadyQueue())


def test_the_queue_s_order() -> None:
    # Oracle: Python's sort.
    rng = random.Random(0)
    queue = ReadyQueue()
    tasks = [
        NodeTask(
            graph_task(rng.randrange(3)), Node(rng.choice([*range(20), MAX_SEQUENCE_NR])), None
        )
        for _ in range(300)
    ]
    for task in tasks:
        queue.push(task)
    taken = [queue.pop() for _ in tasks]
    keys = [(task.depth, task.sequence_nr) for task in taken]
    assert keys == sorted(keys, reverse=True)
    assert {id(task) for task in taken} == {id(task) for task in tasks}


def test_a_task_that_ends_a_thread_and_one_that_wakes_it_come_first() -> None:
    queue = ReadyQueue()
    work = NodeTask(graph_task(0), Node(MAX_SEQUENCE_NR), None)
    wake = NodeTask(graph_task(0), None, None)
    end = NodeTask(None, None, None)
    for task in (work, wake, end):
        queue.push(task)
    assert queue.pop() is end
    assert {queue.pop(), queue.pop()} == {work, wake}


@pytest.mark.parametrize("place", PLACES)
def test_what_was_made_last_runs_first(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    x = leaf(place)
    a, b, c, d = (notes.on(x, name) for name in "abcd")
    (d + b + a + c).sum().backward()
    assert notes.names == ["d", "c", "b", "a"] or notes.names == ["c", "d", "b", "a"]


@pytest.mark.parametrize("place", PLACES)
def test_a_leaf_s_gradient_is_accumulated_first(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    early, late = leaf(place), leaf(place)
    early.register_post_accumulate_grad_hook(lambda tensor: notes.note("early"))
    late.register_post_accumulate_grad_hook(lambda tensor: notes.note("late"))
    y = notes.on(notes.on(early, "a"), "b")
    (y * late).sum().backward()
    assert notes.names == ["late", "b", "a", "early"]


@pytest.mark.parametrize("place", PLACES)
def test_the_inner_pass_comes_before_what_waits_of_the_outer(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    inner = leaf(place)

    def nested(grad: Any) -> None:
        with plugrad.enable_grad():
            notes.on(notes.on(inner, "inner 1"), "inner 2").sum().backward()
        notes.note("outer")

    x = leaf(place)
    waiting = [notes.on(x, "waiting") for _ in range(3)]
    y = then(x, nested)  # made last, runs first; the others wait in the same queue
    plugrad.stack([*waiting, y]).sum().backward()
    assert notes.names == ["inner 2", "inner 1", "outer", "waiting", "waiting", "waiting"]


def test_a_pass_within_a_device_s_node_is_deeper_than_the_node_s_own(toy: ToyBackend) -> None:
    depths: list[int] = []

    def note(grad: Any) -> None:
        depths.append(current_state().graph_task.reentrant_depth)

    def nested(device: str, more: Any) -> Any:
        def run(grad: Any) -> None:
            note(grad)
            with plugrad.enable_grad():
                then(leaf(device), more).sum().backward()

        return run

    innermost = nested("toy:0", nested("cpu", note))
    then(leaf("cpu"), nested("toy:0", nested("toy:1", innermost))).sum().backward()
    assert depths == [0, 1, 2, 3, 4]


@pytest.fixture
def made_nodes() -> Any:
    """The names of the nodes that are made."""
    names: list[str] = []
    observe_node_creation(lambda node: names.append(node.name()))
    yield names
    observe_node_creation(None)


@pytest.mark.parametrize("place", PLACES)
def test_a_single_root_needs_no_node_before_it(
    toy: ToyBackend, place: str, made_nodes: list[str]
) -> None:
    x = leaf(place)
    one, two = (x * 2).sum(), (x * 3).sum()
    one.backward(retain_graph=True)
    assert "GraphRoot" not in made_nodes
    plugrad.autograd.backward([one, two])
    assert made_nodes.count("GraphRoot") == 1


def test_roots_on_several_devices(toy: ToyBackend) -> None:
    notes = Notes()
    x, y, z = leaf("toy:0"), leaf("toy:1"), leaf("cpu")
    roots = [notes.on(x, "x").sum(), notes.on(y, "y").sum(), notes.on(z, "z").sum()]
    plugrad.autograd.backward(roots)
    assert notes.threads == {"x": "plugrad-toy:0", "y": "plugrad-toy:1", "z": "MainThread"}
    assert [t.grad.tolist() for t in (x, y, z)] == [[1.0, 1.0]] * 3


def test_one_tensor_twice_as_a_root(toy: ToyBackend) -> None:
    for place in PLACES:
        x = leaf(place)
        y = (x * 2).sum()
        plugrad.autograd.backward([y, y])
        assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_lead_to_an_input_is_not_even_looked_at(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    deep = x * 2
    middle = (deep * 3) * 4
    y = (middle * 5).sum()
    plugrad.autograd.grad(y, middle)
    # The node right below is counted, the one below that is not.
    assert deep.grad_fn._owner is None


@pytest.mark.parametrize("place", PLACES)
def test_only_what_leads_to_an_input_runs(toy: ToyBackend, place: str) -> None:
    notes = Notes()
    x, y = leaf(place), leaf("toy:1")
    a, b = notes.on(x, "a").to("toy:1"), notes.on(y, "b")
    (grad,) = plugrad.autograd.grad((a * b).sum(), x)
    assert notes.names == ["a"]
    assert grad.tolist() == [1.0, 2.0]


def test_captures_on_several_devices(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    a = x * 2
    b = a.to("toy:1") * 3
    c = b.to("cpu") * 5
    grads = plugrad.autograd.grad(c.sum(), [x, a, b, c])
    assert [str(g.device) for g in grads] == ["toy:0", "toy:0", "toy:1", "cpu"]
    assert [g.tolist()[0] for g in grads] == [30.0, 15.0, 5.0, 1.0]


def test_hooks_on_captured_gradients_run_on_their_device(toy: ToyBackend) -> None:
    notes = Notes()
    x = leaf("toy:0")
    a = x * 2

    def double(grad: Any) -> Any:
        notes.note("hook")
        return grad * 2

    a.register_hook(double)
    (grad,) = plugrad.autograd.grad((a.to("toy:1") * 3).sum(), a)
    assert notes.all == [("hook", "plugrad-toy:0")]
    assert grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("place", PLACES)
def test_backward_into_chosen_inputs_that_are_no_leaves(toy: ToyBackend, place: str) -> None:
    x, w = leaf(place), leaf(place)
    a = x * 2
    b = (a * w).to("toy:1")
    b.sum().backward(inputs=[a, w])
    assert x.grad is None
    assert a.grad.tolist() == [1.0, 2.0]
    assert w.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("place", PLACES)
def test_undefined_gradients_from_end_to_end(toy: ToyBackend, place: str) -> None:
    class Choose(plugrad.autograd.Function):
        """Has a gradient for its first argument only, and says what it was given."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x.clone(), y.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append([grad is None for grad in grads])
            return grads[0], None

    seen: list[list[bool]] = []
    x, y = leaf(place), leaf("toy:1")
    y_hooks: list[Any] = []
    y.register_hook(y_hooks.append)
    a, _ = Choose.apply(x, y.to(place) * 1)
    found = plugrad.autograd.grad(a.sum(), [x, y], allow_unused=True)
    assert seen == [[False, True]]
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1] is None
    Choose.apply(x, y.to(place) * 1)[0].sum().backward()
    assert y.grad is None
