"""`plugrad.plugins.watching`: the notifications that observers of a program get, and the properties
of nodes."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.plugins.watching import (
    Trace,
    edges_of,
    history_of,
    leaf_of,
    name_of,
    notes_of,
    output_of,
    saved_by,
    sizes_of,
    watching,
)

HEARD = (
    *("enter_pass", "leave_pass", "arrive", "queue_node", "run_hook", "release"),
    *("enter_node", "run_node", "leave_node", "dispatch"),
)


class Log(Trace):
    """Records its notifications, by the names of its methods, and passes them on."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[str, Any]] = []


def _hearing(name: str) -> Any:
    def method(self: Log, *args: Any) -> Any:
        self.all.append((name, args))
        return getattr(Trace, name)(self, *args)

    return method


for _name in HEARD:
    setattr(Log, _name, _hearing(_name))


def heard(log: Log, *names: str) -> list[tuple[Any, ...]]:
    return [args for name, args in log.all if name in names]


def test_a_trace_hears_of_a_pass_in_its_order() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    with watching(Log()) as log:
        loss.backward()
    engine = [name for name, _ in log.all if name not in ("dispatch",)]
    node = ["enter_node", "run_node", "release", "arrive", "queue_node", "leave_node"]
    last = ["enter_node", "run_node", "release", "leave_node"]
    assert engine == ["enter_pass", "queue_node", *node, *node, *last, "leave_pass"]
    ((task, root, counts),) = heard(log, "enter_pass")
    assert name_of(root) == "SumBackward0"
    assert [(name_of(each), count) for each, count in counts] == [
        ("ExpBackward0", 1),
        ("AccumulateGrad", 1),
    ]
    assert all(args[0] is task for args in heard(log, "arrive", "queue_node", "leave_pass"))


def test_gradients_that_meet_are_told_from_those_that_come_first() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with watching(Log()) as log:
        (x + x * x).sum().backward()
    found = [
        (nr, is_sum, left)
        for _, node, nr, _, is_sum, left in heard(log, "arrive")
        if leaf_of(node) is x
    ]
    assert found == [(0, False, 2), (0, True, 1), (0, True, 0)]


def test_counts_are_told_of_nodes_that_another_pass_holds() -> None:
    x = plugrad.ones(2, requires_grad=True)
    shared = x.exp()
    total = shared.sum()

    class Again(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with watching(Log()) as log:
                total.backward(retain_graph=True)
            inner.append(log)
            return grad

    inner: list[Log] = []
    Again.apply(shared).sum().backward(retain_graph=True)
    lefts = [(name_of(args[1]), args[5]) for args in heard(inner[0], "arrive")]
    assert lefts == [("ExpBackward0", 0), ("AccumulateGrad", 0)]


def test_hooks_are_told_of_before_they_run() -> None:
    order: list[str] = []

    class Order(Trace):
        def run_hook(self, node: Any, kind: str, hook: Any) -> None:
            order.append(f"{kind} of {name_of(node)}")
            super().run_hook(node, kind, hook)

    def hook(*args: Any) -> None:
        order.append("runs")

    x = plugrad.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(hook)
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(hook)
    y.grad_fn.register_hook(hook)
    x.register_post_accumulate_grad_hook(hook)
    with watching(Order()):
        y.sum().backward()
    assert order == [
        *("tensor of ExpBackward0", "runs", "pre of ExpBackward0", "runs"),
        *("post of ExpBackward0", "runs", "accumulate of AccumulateGrad", "runs"),
    ]


def test_traces_nest_and_all_hear() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with watching(Log()) as outer, watching(Log()) as inner:
        x.exp().sum().backward()
    assert [name for name, _ in outer.all] == [name for name, _ in inner.all]
    with watching(Log()) as log:
        pass
    x.exp()
    assert log.all == []


def test_a_pass_that_fails_ends() -> None:
    class Broken(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ZeroDivisionError

    x = plugrad.ones(2, requires_grad=True)
    with watching(Log()) as log, pytest.raises(ZeroDivisionError):
        Broken.apply(x).sum().backward()
    assert log.all[-1][0] == "leave_pass"
    x.exp().sum().backward()  # nothing is left behind
    assert log.all[-1][0] == "leave_pass"


def test_a_retained_graph_releases_nothing() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with watching(Log()) as log:
        x.exp().sum().backward(retain_graph=True)
    assert heard(log, "release") == []


def test_what_can_be_asked_of_a_node() -> None:
    x = plugrad.ones(2, 3, requires_grad=True)
    y = x.exp()
    assert history_of(x) is None
    found = history_of(y)
    assert found is not None
    node, output_nr = found
    assert (node, output_nr) == (y.grad_fn, 0)
    ((target, input_nr),) = edges_of(node)
    assert leaf_of(target) is x
    assert leaf_of(node) is None
    assert input_nr == 0
    assert output_of(node) == ((2, 3), "float32")
    assert sizes_of(y) == (2, 3)
    ((name, value),) = saved_by(node)
    assert name == "result"
    assert plugrad.equal(value, y)
    y.sum().backward()
    assert saved_by(node) == []
    notes_of(node)["mine"] = 1
    assert notes_of(node)["mine"] == 1
    assert node.metadata["mine"] == 1


def test_saved_tensors_are_listed_without_unpacking_them() -> None:
    x = plugrad.ones(2, requires_grad=True)

    def pack(value: Any) -> str:
        return "packed"

    def unpack(value: Any) -> Any:
        raise AssertionError("nobody asked for it")

    with plugrad.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert saved_by(y.grad_fn) == [("self", "packed"), ("other", "packed")]


def test_a_custom_functions_tensors_are_listed_and_its_attributes_are_not() -> None:
    class Keep(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            ctx.save_for_backward(value, None)
            ctx.saved_by_hand = value
            return value.clone()

    x = plugrad.ones(2, requires_grad=True)
    ((name, value),) = saved_by(Keep.apply(x).grad_fn)
    assert (name, value is x) == ("tensors[0]", True)
