"""The exported trace: valid, properly nested, with arrows from forward to backward."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import plugrad
from plugrad.autograd.profiler import profile, record_function

Entry = dict[str, Any]


def export(prof: profile, folder: Path) -> dict[str, list[Entry]]:
    """The trace's entries by phase."""
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    assert trace["displayTimeUnit"] == "ms"
    phases: dict[str, list[Entry]] = defaultdict(list)
    for entry in trace["traceEvents"]:
        assert isinstance(entry["pid"], int)
        assert isinstance(entry["tid"], int)
        phases[entry["ph"]].append(entry)
    return phases


def training_step(device: str = "cpu", **options: Any) -> profile:
    x = plugrad.ones(3, 4, device=device)
    w = plugrad.rand(4, 5, device=device, requires_grad=True)
    with profile(**options) as prof:
        with record_function("forward"):
            loss = (x @ w).movedim(0, 1).exp().sum()
        loss.backward()
    return prof


def check_nesting(events: list[Entry]) -> None:
    """On one thread, of two events one contains the other or they are apart (to a nanosecond)."""
    threads = defaultdict(list)
    for event in events:
        assert event["dur"] >= 0
        start = round(event["ts"] * 1000)
        threads[event["tid"]].append((start, start + round(event["dur"] * 1000)))
    for spans in threads.values():
        outer: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while outer and start >= outer[-1]:
                outer.pop()
            assert not outer or end <= outer[-1]
            outer.append(end)


def check_arrows(phases: dict[str, list[Entry]]) -> dict[str, str]:
    """Every arrow begins and ends at an event; from which name to which they lead."""
    starts = {entry["id"]: entry for entry in phases["s"]}
    ends = {entry["id"]: entry for entry in phases["f"]}
    assert len(starts) == len(phases["s"])
    assert starts.keys() == ends.keys()
    events = {(event["tid"], event["ts"], event["name"]): event for event in phases["X"]}
    found = {}
    for key, start in starts.items():
        end = ends[key]
        assert end["bp"] == "e"
        assert start["ts"] <= end["ts"]
        (source,) = [n for tid, ts, n in events if (tid, ts) == (start["tid"], start["ts"])]
        target = [n for tid, ts, n in events if (tid, ts) == (end["tid"], end["ts"])][-1]
        found[target] = source
    return found


def test_every_event_is_there(tmp_path: Path) -> None:
    prof = training_step()
    phases = export(prof, tmp_path)
    assert prof.function_events is not None
    assert [e["name"] for e in phases["X"]] == [e.name for e in prof.function_events]
    categories = {event["name"]: event["cat"] for event in phases["X"]}
    assert categories["forward"] == "user_annotation"
    assert categories["plugrad::exp"] == "cpu_op"


def test_events_nest(tmp_path: Path) -> None:
    check_nesting(export(training_step(), tmp_path)["X"])


def test_arrows_lead_from_calls_to_their_nodes(tmp_path: Path) -> None:
    arrows = check_arrows(export(training_step(), tmp_path))
    assert arrows["ExpBackward0"] == "plugrad::exp"
    assert arrows["SumBackward0"] == "plugrad::sum"
    assert arrows["MmBackward0"] == "plugrad::mm"


def test_two_passes_over_a_graph_have_arrows_of_their_own(tmp_path: Path) -> None:
    x = plugrad.ones(2, requires_grad=True)
    with profile() as prof:
        y = x.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
    phases = export(prof, tmp_path)
    check_arrows(phases)
    assert len(phases["s"]) == 4


def test_threads_have_rows_and_names(tmp_path: Path, second_backend: str) -> None:
    phases = export(training_step(second_backend), tmp_path)
    names = {e["tid"]: e["args"]["name"] for e in phases["M"] if e["name"] == "thread_name"}
    assert "MainThread" in names.values()
    assert len(names) == 2
    assert {event["tid"] for event in phases["X"]} == set(names)
    check_nesting(phases["X"])
    assert check_arrows(phases)["ExpBackward0"] == "plugrad::exp"


def test_shapes_memory_and_stacks_are_in_the_arguments(tmp_path: Path) -> None:
    phases = export(
        training_step(record_shapes=True, profile_memory=True, with_stack=True), tmp_path
    )
    arguments = {event["name"]: event["args"] for event in phases["X"]}
    assert arguments["plugrad::mm"]["Input Dims"] == [[3, 4], [4, 5]]
    assert arguments["plugrad::mm"]["Bytes"] == 60
    assert "training_step" in arguments["plugrad::mm"]["Call stack"]
    assert arguments["plugrad::mm"]["Sequence number"] >= 0
    assert arguments["MmBackward0"]["Fwd thread id"] == 1
    held = [entry["args"]["bytes"] for entry in phases["C"]]
    assert held[0] > 0
    assert min(held) >= 0


def test_stretches_that_overlap_are_on_rows_of_their_own(tmp_path: Path) -> None:
    first = record_function("first")
    with profile() as prof:
        first.__enter__()
        with record_function("second"):
            first.__exit__(None, None, None)
    phases = export(prof, tmp_path)
    (begin,), (end,) = phases["b"], phases["e"]
    assert begin["name"] == end["name"] == "first"
    assert begin["id"] == end["id"]
    assert begin["ts"] <= end["ts"]
    assert [event["name"] for event in phases["X"]] == ["second"]


def test_an_empty_profile_is_a_valid_trace(tmp_path: Path) -> None:
    with profile() as prof:
        pass
    assert export(prof, tmp_path)["X"] == []
