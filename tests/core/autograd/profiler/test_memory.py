"""Bytes by event: what counts as allocated, by whom, and when it is free again."""

from __future__ import annotations

import gc
import threading

import numpy as np

import plugrad
from plugrad.autograd.profiler import FunctionEvent, profile, record_function

KB = 1024


def by_name(prof: profile) -> dict[str, FunctionEvent]:
    assert prof.function_events is not None
    return {event.name: event for event in prof.function_events}


def block() -> plugrad.Tensor:
    """A kilobyte."""
    return plugrad.ones(256)


def test_a_result_counts_for_the_operator_that_made_it() -> None:
    x = block()
    with profile(profile_memory=True) as prof:
        y = x * 2
    event = by_name(prof)["plugrad::mul"]
    assert (event.cpu_memory_usage, event.self_cpu_memory_usage) == (KB, KB)
    del y


def test_without_profile_memory_nothing_is_counted() -> None:
    with profile() as prof:
        block()
    assert by_name(prof)["plugrad::ones"].cpu_memory_usage == 0


def test_views_and_writes_count_nothing() -> None:
    x = plugrad.from_numpy(np.ones((16, 16), dtype=np.float32))
    with profile(profile_memory=True) as prof:
        kept = [x.view(256), x.t(), x[2:4], x.expand(4, 16, 16), x.as_strided((4,), (2,))]
        kept += x.split(4)
        x.mul_(2)
        x[0] = 3.0
    assert {event.cpu_memory_usage for event in prof.function_events or ()} == {0}
    del kept


def test_a_view_of_a_new_array_is_counted_once_in_full() -> None:
    x = block()
    with profile(profile_memory=True) as prof:
        part = (x * 2)[:4]
    events = by_name(prof)
    assert events["plugrad::mul"].cpu_memory_usage == KB
    # The whole array lives as long as its view.
    assert prof.total_average().self_cpu_memory_usage == KB
    del part


def test_what_is_freed_counts_for_whoever_is_running() -> None:
    with profile(profile_memory=True) as prof:
        x = block()
        with record_function("frees"):
            del x
    events = by_name(prof)
    assert events["plugrad::ones"].cpu_memory_usage == KB
    assert events["frees"].cpu_memory_usage == -KB


def test_what_is_freed_between_events_is_an_event() -> None:
    with profile(profile_memory=True) as prof:
        x = block()
        del x
    event = by_name(prof)["[memory]"]
    assert event.cpu_memory_usage == event.self_cpu_memory_usage == -KB
    assert event.cpu_time_total == 0


def test_intermediate_results_cancel_in_the_operator_around_them() -> None:
    with plugrad.library.Library("profiler_memory", "DEF") as lib:
        lib.define("composed(Tensor self) -> Tensor")
        lib.impl("composed", lambda a: (a * 2).exp(), "CompositeImplicitAutograd")
        x = block()
        with profile(profile_memory=True) as prof:
            y = plugrad.ops.profiler_memory.composed(x)
        events = by_name(prof)
        assert events["plugrad::mul"].cpu_memory_usage == KB
        assert events["plugrad::exp"].cpu_memory_usage == KB
        assert events["profiler_memory::composed"].cpu_memory_usage == KB
        assert events["profiler_memory::composed"].self_cpu_memory_usage == -KB
        del y


def test_what_was_there_before_is_not_freed_by_the_profile() -> None:
    x = block()
    with profile(profile_memory=True) as prof:
        del x
        gc.collect()
    assert prof.function_events == []


def test_all_that_a_training_step_allocates_and_frees_is_accounted_for() -> None:
    w = plugrad.ones(256, requires_grad=True)
    with profile(profile_memory=True) as prof:
        loss = (w * w).exp().sum()
        loss.backward()
        del loss
    assert w.grad is not None
    # What is left is the gradient.
    assert prof.total_average().self_cpu_memory_usage == KB


def test_several_results_count_all() -> None:
    x = plugrad.rand(256)
    with profile(profile_memory=True) as prof:
        values, indices = x.sort()
    assert by_name(prof)["plugrad::sort"].cpu_memory_usage == values.nbytes + indices.nbytes


def test_an_array_freed_on_another_thread_is_accounted_for_there() -> None:
    with profile(profile_memory=True) as prof:
        held = [block()]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    event = by_name(prof)["[memory]"]
    assert event.cpu_memory_usage == -KB
    assert event.thread == 2


def test_nothing_is_watched_after_the_end() -> None:
    with profile(profile_memory=True) as prof:
        x = block()
    del x
    assert "[memory]" not in by_name(prof)


def test_the_table_shows_both_columns() -> None:
    with profile(profile_memory=True) as prof:
        kept = block()
    lines = prof.key_averages().table().splitlines()
    assert "CPU Mem  Self CPU Mem" in lines[1]
    assert lines[3].count("1.00 KB") == 2
    del kept
