"""plugrad.profiler: activities, schedules, steps."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.profiler import ProfilerActivity, profile, schedule

SCHEDULES: list[dict[str, int]] = [
    {"wait": 0, "warmup": 0, "active": 1},
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 2, "warmup": 0, "active": 3, "repeat": 2},
    {"wait": 1, "warmup": 2, "active": 1, "repeat": 1, "skip_first": 3},
    {"wait": 2, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
]


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize("arguments", SCHEDULES)
def test_schedules_are_pytorchs(torch_oracle: ModuleType, arguments: dict[str, int]) -> None:
    theirs = importlib.import_module("torch.profiler").schedule(**arguments)
    mine = schedule(**arguments)
    assert [mine(n).name for n in range(20)] == [theirs(n).name for n in range(20)]


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"repeat": -2}])
def test_a_schedule_must_make_sense(wrong: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def steps(lib: Any, count: int, **arguments: Any) -> list[list[str]]:
    """What was recorded each time that a trace was ready: per step, which operators."""
    found: list[list[str]] = []

    def ready(prof: Any) -> None:
        names = [event.name for event in prof.events() if not event.name.startswith("Profiler")]
        found.append([name.split("::")[1] for name in names])

    x = lib.zeros(1)
    operators = [lib.exp, lib.sin, lib.cos, lib.tanh, lib.log, lib.neg, lib.sqrt, lib.floor]
    activities = [lib.profiler.ProfilerActivity.CPU]
    with lib.profiler.profile(activities=activities, on_trace_ready=ready, **arguments) as prof:
        for step in range(count):
            operators[step](x)
            prof.step()
    return found


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
@pytest.mark.parametrize("arguments", [None, *SCHEDULES])
@pytest.mark.parametrize("count", [4, 7])
def test_the_steps_that_a_schedule_picks_are_recorded(
    torch_oracle: ModuleType, arguments: dict[str, int] | None, count: int
) -> None:
    importlib.import_module("torch.profiler")
    results = []
    for lib in (plugrad, torch_oracle):
        plan = {} if arguments is None else {"schedule": lib.profiler.schedule(**arguments)}
        results.append(steps(lib, count, **plan))
    assert results[0] == results[1]


def test_steps_have_numbers_in_the_trace_and_are_one_kind_in_the_table(tmp_path: Path) -> None:
    x = plugrad.ones(2)
    with profile(schedule=schedule(wait=0, warmup=1, active=2)) as prof:
        for _ in range(3):
            x.exp()
            prof.step()
    averages = {event.key: event for event in prof.key_averages()}
    assert averages["ProfilerStep*"].count == 2
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    labels = [entry["name"] for entry in entries if entry.get("cat") == "user_annotation"]
    assert labels == ["ProfilerStep#1", "ProfilerStep#2"]


def test_start_and_stop_do_what_the_with_statement_does() -> None:
    prof = profile(record_shapes=True)
    with pytest.raises(AssertionError, match="Expected profiling results"):
        prof.events()
    prof.start()
    plugrad.ones(2).exp()
    prof.stop()
    plugrad.ones(2).sin()
    assert [event.key for event in prof.key_averages()] == ["plugrad::ones", "plugrad::exp"]


def test_activities_that_cannot_be_measured_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])


def test_both_profiles_are_shown_and_written_alike(tmp_path: Path) -> None:
    """Oracle: the profile of plugrad.autograd.profiler; its table and pages have tests."""
    waiting = profile()
    assert str(waiting) == repr(waiting)
    assert "profile" in waiting._repr_html_()
    x = plugrad.ones(2)
    with profile() as prof:
        x * 2
    assert "plugrad::mul" in str(prof)
    assert str(prof) == str(prof.events())
    assert "plugrad::mul" in prof._repr_html_()
    prof.export_html(str(tmp_path / "profile.html"))
    assert "plugrad::mul" in (tmp_path / "profile.html").read_text()
