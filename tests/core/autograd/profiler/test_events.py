"""What a profile records: which events, in what order, within what, on which thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad.autograd.profiler import FunctionEvent, profile, record_function

ENGINE = "autograd::engine::evaluate_function: "


def names(prof: profile) -> list[str]:
    assert prof.function_events is not None
    return [event.name for event in prof.function_events]


def find(prof: profile, name: str) -> FunctionEvent:
    (event,) = every(prof, name)
    return event


def every(prof: profile, name: str) -> list[FunctionEvent]:
    assert prof.function_events is not None
    return [event for event in prof.function_events if event.name == name]


def test_a_call_is_one_event_whatever_it_redispatches_to() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with profile() as prof:
        x.view(2, 1)
        x.detach().mul_(2)
    assert [name for name in names(prof) if "view" in name] == ["plugrad::view"]
    assert [name for name in names(prof) if "mul" in name] == ["plugrad::mul_"]


def test_overloads_share_a_name() -> None:
    x = plugrad.ones(2)
    with profile() as prof:
        x * x
        x * 2
    both = every(prof, "plugrad::mul")
    assert [event.overload_name for event in both] == ["Tensor", "Scalar"]


def test_what_an_operator_calls_is_its_child() -> None:
    x = plugrad.ones(2, 3)
    with profile() as prof:
        x.movedim(0, 1)
    outer = find(prof, "plugrad::movedim")
    assert outer.cpu_parent is None
    assert outer.cpu_children
    for child in outer.cpu_children:
        assert child.cpu_parent is outer
        assert outer.time_range.start <= child.time_range.start
        assert child.time_range.end <= outer.time_range.end
    inner = sum(child.cpu_time_total for child in outer.cpu_children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner)


def test_an_overload_that_only_calls_another_one_is_no_event_of_its_own() -> None:
    with plugrad.library.Library("profiler_test", "DEF") as lib:
        lib.define("twice(Tensor self) -> Tensor")
        lib.define("twice.by(Tensor self, Scalar factor) -> Tensor")
        lib.impl("twice.by", lambda a, factor: a * factor, "CompositeImplicitAutograd")
        overload = plugrad.ops.profiler_test.twice.by
        lib.impl("twice", lambda a: overload(a, 2), "CompositeImplicitAutograd")
        x = plugrad.ones(2)
        with profile() as prof:
            plugrad.ops.profiler_test.twice(x)
    assert names(prof) == ["profiler_test::twice", "plugrad::mul"]
    assert find(prof, "plugrad::mul").cpu_parent is find(prof, "profiler_test::twice")


def test_a_backward_node_runs_within_the_engines_event() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = (x * x).sum()
    with profile() as prof:
        y.backward()
    outer = find(prof, ENGINE + "MulBackward0")
    inner = find(prof, "MulBackward0")
    assert inner.cpu_parent is outer
    assert (outer.scope, inner.scope) == (0, 1)
    assert {child.name for child in inner.cpu_children} == {"plugrad::mul"}
    # x's gradient arrives twice: the sum is made where gradients are handed on.
    assert [child.name for child in outer.cpu_children] == ["MulBackward0", "plugrad::add_"]
    assert find(prof, "AccumulateGrad").cpu_parent is find(prof, ENGINE + "AccumulateGrad")


def test_sequence_numbers_tie_backward_to_forward() -> None:
    with profile() as prof:
        x = plugrad.randn(10, 10, requires_grad=True)
        y = plugrad.randn(10, 10, requires_grad=True)
        (x + y).sum().backward()
    for forward, node in (("plugrad::add", "AddBackward0"), ("plugrad::sum", "SumBackward0")):
        made, evaluated, run = find(prof, forward), find(prof, ENGINE + node), find(prof, node)
        assert made.sequence_nr >= 0
        assert made.sequence_nr == evaluated.sequence_nr == run.sequence_nr
        assert made.fwd_thread == 0
        assert made.thread == evaluated.fwd_thread == run.fwd_thread
        assert made is evaluated.forward_event is run.forward_event
    for event in (*every(prof, "plugrad::randn"), *every(prof, "AccumulateGrad")):
        assert event.sequence_nr == -1


def test_what_is_not_recorded_by_autograd_has_no_sequence_number() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with profile() as prof, plugrad.no_grad():
        x * x
    assert find(prof, "plugrad::mul").sequence_nr == -1


def test_of_nested_operators_the_innermost_made_the_node() -> None:
    x = plugrad.ones(2, 3, requires_grad=True)
    with profile() as prof:
        x.movedim(0, 1).sum().backward()
    outer = find(prof, "plugrad::movedim")
    (node,) = [
        event
        for event in prof.function_events or ()
        if event.scope == 1 and event.sequence_nr == outer.sequence_nr
    ]
    assert node.forward_event is not None
    assert node.forward_event.cpu_parent is outer


def test_a_node_of_an_older_graph_has_no_forward_event() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = (x * x).sum()
    with profile() as prof:
        plugrad.ones(1, requires_grad=True) * 3
        y.backward()
    assert find(prof, "MulBackward0").forward_event is None
    assert find(prof, "MulBackward0").fwd_thread == 0


def test_double_backward_ties_both_levels() -> None:
    x = plugrad.full((2,), 3.0, requires_grad=True)
    with profile() as prof:
        y = x.exp()
        (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
        first.sum().backward()
    made_in_backward = [e for e in every(prof, "plugrad::mul") if e.sequence_nr >= 0]
    (product,) = made_in_backward
    assert product.cpu_parent is not None
    assert product.cpu_parent.name == "ExpBackward0"
    assert find(prof, "MulBackward0").forward_event is product


def test_a_function_of_the_users_own_is_an_event_and_made_its_node() -> None:
    class Twice(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = plugrad.ones(3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        Twice.apply(x).sum().backward()
        Twice.apply(x.detach())
    made, unrecorded = every(prof, "Twice")
    assert made.input_shapes == [[3]]
    assert not made.is_user_annotation
    assert made.cpu_children[0].name == "plugrad::mul"
    run = find(prof, "TwiceBackward")
    assert run.forward_event is made
    assert run.sequence_nr == made.sequence_nr >= 0
    assert unrecorded.sequence_nr == -1


def test_a_function_that_fails_is_an_event_that_ends() -> None:
    class Failing(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            raise ValueError

    x = plugrad.ones(3)
    with profile() as prof:
        with pytest.raises(ValueError):
            Failing.apply(x)
        x.exp()
    assert names(prof) == ["Failing", "plugrad::exp"]
    assert find(prof, "plugrad::exp").cpu_parent is None


def test_a_profile_changes_nothing_about_what_is_copied() -> None:
    w = plugrad.ones(3, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            (w * 2 + w.exp()).sum().backward()
    # The first gradient becomes .grad itself, later ones are added in place.
    assert not [name for name in names(prof) if "clone" in name]
    added = [e for e in prof.function_events or () if e.name == "plugrad::add_"]
    parents = [e.cpu_parent.name for e in added if e.cpu_parent is not None]
    assert "AccumulateGrad" in parents
    assert len(set(parents)) == 2


def test_a_recorder_that_comes_in_the_middle_of_a_node_sees_the_rest() -> None:
    prof = profile()

    class Starts(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            prof.__enter__()
            result = grad.exp()
            prof.__exit__(None, None, None)
            return result

    x = plugrad.ones(3, requires_grad=True)
    Starts.apply(x).sum().backward()
    assert names(prof) == ["plugrad::exp"]


def test_an_error_ends_its_events() -> None:
    x = plugrad.ones(2)
    with profile() as prof:
        with pytest.raises(RuntimeError):
            x + plugrad.ones(3)
        x * x
    assert find(prof, "plugrad::add").cpu_time_total > 0
    assert find(prof, "plugrad::mul").cpu_parent is None


def test_an_error_in_backward_ends_its_events() -> None:
    def fail(grad: Any) -> None:
        raise ValueError

    x = plugrad.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(fail)
    with profile() as prof:
        with pytest.raises(ValueError):
            y.sum().backward()
        x.exp()
    assert find(prof, "plugrad::exp").cpu_parent is None


def test_shapes_are_kept_on_demand() -> None:
    a, b = plugrad.ones(4, 5), plugrad.ones(5, 6, requires_grad=True)
    with profile(record_shapes=True) as prof:
        c = plugrad.mm(a, b)
        plugrad.cat([c, c])
        c.sum().backward()
    assert find(prof, "plugrad::mm").input_shapes == [[4, 5], [5, 6]]
    assert find(prof, "plugrad::cat").input_shapes == [[[4, 6], [4, 6]], []]
    assert find(prof, "MmBackward0").input_shapes == [[4, 6]]
    with profile() as prof:
        plugrad.mm(a, b)
    assert find(prof, "plugrad::mm").input_shapes == []


def test_other_threads_are_not_profiled() -> None:
    x = plugrad.ones(2)
    with profile() as prof:
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
    assert names(prof) == []


def test_another_thread_may_have_a_profile_of_its_own() -> None:
    x = plugrad.ones(2)
    found: list[list[str]] = []

    def work() -> None:
        with profile() as inner:
            x.exp()
        found.append(names(inner))

    with profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x * x
    assert found == [["plugrad::exp"]]
    assert names(prof) == ["plugrad::mul"]


def test_the_thread_of_a_device_is_profiled_for_whom_it_works(second_backend: str) -> None:
    x = plugrad.ones(2, device=second_backend, requires_grad=True)
    with profile() as prof:
        (x * x).sum().backward()
    made, run = every(prof, "plugrad::mul")[0], find(prof, "MulBackward0")
    assert made.thread == 1
    assert run.thread == 2
    assert run.fwd_thread == 1
    assert run.forward_event is made
    assert run.cpu_parent is not None
    assert run.cpu_parent.name == ENGINE + "MulBackward0"


def test_profiles_nest_and_each_sees_what_runs_inside_it() -> None:
    x = plugrad.ones(2)
    with profile() as outer:
        x * x
        with profile() as inner, record_function("both"):
            x.exp()
    assert names(inner) == ["both", "plugrad::exp"]
    assert names(outer) == ["plugrad::mul", "both", "plugrad::exp"]


def test_profiles_may_end_in_any_order() -> None:
    x = plugrad.ones(2)
    first, second = profile(), profile()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    x.exp()
    second.__exit__(None, None, None)
    x.sin()
    assert names(first) == []
    assert names(second) == ["plugrad::exp"]


def test_dispatch_traces_go_on_beside_a_profile() -> None:
    x = plugrad.ones(2)
    trace = plugrad.record_dispatch_trace
    with trace() as lines, profile() as prof, trace() as inner:
        x.exp()
    assert [str(line) for line in lines] == [str(line) for line in inner]
    # A package that brings a variant of the kernel adds a line.
    steps = [(line.kind, line.key) for line in lines if line.kind != "variant"]
    assert steps == [("call", "AutogradCPU"), ("redispatch", "CPU")]
    assert names(prof) == ["plugrad::exp"]
