"""record_function: labelled stretches, nested, overlapping, across threads, as a decorator."""

from __future__ import annotations

import threading

import plugrad
from plugrad.autograd.profiler import FunctionEvent, profile, record_function


def by_name(prof: profile) -> dict[str, FunctionEvent]:
    assert prof.function_events is not None
    return {event.name: event for event in prof.function_events}


def test_labels_and_operators_nest() -> None:
    x = plugrad.ones(2)
    with profile() as prof:
        with record_function("outer"):
            x * 2
            with record_function("inner"):
                x - 1
        x.exp()
    events = by_name(prof)
    assert list(events) == ["outer", "plugrad::mul", "inner", "plugrad::sub", "plugrad::exp"]
    assert events["plugrad::mul"].cpu_parent is events["outer"]
    assert events["inner"].cpu_parent is events["outer"]
    assert events["plugrad::sub"].cpu_parent is events["inner"]
    assert events["plugrad::exp"].cpu_parent is None
    assert events["outer"].is_user_annotation
    assert not events["plugrad::mul"].is_user_annotation


def test_it_decorates_a_function_that_may_call_itself() -> None:
    @record_function("countdown")
    def countdown(n: int) -> int:
        return n and countdown(n - 1)

    countdown(1)  # no listener
    with profile() as prof:
        countdown(2)
    outer, middle, inner = prof.function_events or ()
    assert inner.cpu_parent is middle
    assert middle.cpu_parent is outer
    assert prof.key_averages()[0].count == 3


def test_it_gives_itself_to_the_with_statement() -> None:
    with record_function("label") as label:
        assert label.name == "label"


def test_an_error_ends_it() -> None:
    with profile() as prof:
        try:
            with record_function("failing"):
                raise KeyError
        except KeyError:
            pass
        plugrad.ones(2).exp()
    assert by_name(prof)["plugrad::exp"].cpu_parent is None


def test_stretches_that_overlap_take_no_part_in_the_nesting() -> None:
    x = plugrad.ones(2)
    first = record_function("first")
    with profile() as prof:
        first.__enter__()
        with record_function("second"):
            first.__exit__(None, None, None)
            x.exp()
        x.sin()
    events = by_name(prof)
    assert events["first"].is_async
    assert events["first"].self_cpu_time_total == 0
    assert events["first"].cpu_children == []
    assert events["second"].cpu_parent is None
    assert events["plugrad::exp"].cpu_parent is events["second"]
    assert events["plugrad::sin"].cpu_parent is None


def test_one_that_ends_on_another_thread_is_asynchronous() -> None:
    x = plugrad.ones(2)
    label = record_function("long")
    with profile() as prof:
        label.__enter__()
        thread = threading.Thread(target=label.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        x.exp()
    events = by_name(prof)
    assert events["long"].is_async
    assert events["plugrad::exp"].cpu_parent is None


def test_one_that_is_open_at_the_end_ends_there() -> None:
    label = record_function("open")
    with profile() as prof:
        label.__enter__()
        plugrad.ones(2).exp()
    label.__exit__(None, None, None)
    event = by_name(prof)["open"]
    assert event.cpu_time_total > 0
    assert [child.name for child in event.cpu_children] == ["plugrad::ones", "plugrad::exp"]


def test_one_that_began_before_the_profile_is_not_in_it() -> None:
    label = record_function("early")
    label.__enter__()
    with profile() as prof:
        label.__exit__(None, None, None)
    assert prof.function_events == []
