"""What holds of every recording, and ways to read one."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any, get_type_hints

from plugrad_viewer.recording import format as form

# Kinds that say something of a node: n is its number.
OF_NODES = {kind for kind, fields in form.KINDS.items() if fields[:1] == ("n",)}


def kinds(data: Any, *wanted: str) -> list[str]:
    """The kinds of the events, in order; only the given ones, if any."""
    return [event["k"] for event in data["events"] if not wanted or event["k"] in wanted]


def events(data: Any, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, in order."""
    return [event for event in data["events"] if event["k"] == kind]


def names(data: Any, kind: str) -> list[str]:
    """The names of the nodes that events of a kind are about, in order."""
    return [data["nodes"][event["n"]]["name"] for event in events(data, kind)]


def validate(data: Any) -> None:
    """Check a recording: fields, references, times, and what has to come before what."""
    assert json.loads(json.dumps(data)) == data
    assert set(data) == set(get_type_hints(form.Data))
    assert data["version"] == form.VERSION
    for table, of in (
        ("sources", form.Source),
        ("modules", form.Module),
        ("threads", form.Thread),
        ("calls", form.Call),
        ("nodes", form.Node),
    ):
        for entry in data[table]:
            assert set(entry) == set(get_type_hints(of))
    _validate_tables(data)
    _validate_events(data)
    if data["about"]["truncated"] is None:
        _validate_order(data)


def _validate_tables(data: Any) -> None:
    modules, calls, nodes = data["modules"], data["calls"], data["nodes"]
    for index, module in enumerate(modules):
        assert -1 <= module["parent"] < index
    for index, call in enumerate(calls):
        assert -1 <= call["parent"] < index
        assert -1 <= call["module"] < len(modules)
        assert -1 <= call["node"] < len(nodes)
        assert 0 <= call["thread"] < len(data["threads"])
        assert 0 <= call["start"] <= call["end"]
        if call["source"] is not None:
            source = data["sources"][call["source"][0]]
            assert 0 <= call["source"][1] - source["first"] < len(source["lines"])
        for step in call["steps"]:
            assert set(step) == set(get_type_hints(form.Step))
            assert 0 <= step["keyset"] < len(data["keysets"])
            assert call["start"] <= step["start"] <= step["end"] <= call["end"]
        for value in call["inputs"] + call["outputs"]:
            assert set(value) == set(get_type_hints(form.Value))
        assert not call["raised"] or not call["outputs"]
    for node in nodes:
        assert node["kind"] in ("function", "leaf", "root")
        assert -1 <= node["call"] < len(calls)
        assert -1 <= node["module"] < len(modules)
        assert all(0 <= target < len(nodes) for target, _ in node["edges"])
        for saved in node["saved"]:
            assert set(saved) == set(get_type_hints(form.Saved))
    # No node overlaps another: the page draws boxes of 132 x 34 pixels.
    for first, second in combinations([(node["x"], node["y"]) for node in nodes], 2):
        assert abs(first[0] - second[0]) >= 149.8 or abs(first[1] - second[1]) >= 47.8


def _validate_events(data: Any) -> None:
    times = [event["t"] for event in data["events"]]
    assert times == sorted(times)
    for event in data["events"]:
        assert set(event) == {"t", "th", "k", *form.KINDS[event["k"]]}
        assert 0 <= event["th"] < len(data["threads"])
        if event["k"] in OF_NODES:
            assert 0 <= event["n"] < len(data["nodes"])


def _validate_order(data: Any) -> None:
    """A node exists before any event about it, is queued before it is taken, and so on."""
    there: set[int] = set()
    queued: dict[int, str] = {}
    running: set[int] = set()
    open_calls: set[int] = set()
    passes: set[int] = set()
    for event in data["events"]:
        kind = event["k"]
        if kind == "node":
            assert event["n"] not in there
            there.add(event["n"])
        elif kind in OF_NODES:
            assert event["n"] in there
        if kind == "call":
            open_calls.add(event["c"])
        elif kind == "step":
            assert event["c"] in open_calls
        elif kind == "end":
            open_calls.remove(event["c"])
        elif kind == "backward":
            passes.add(event["b"])
        elif kind == "backward_end":
            passes.remove(event["b"])
        elif kind == "ready":
            assert event["n"] not in queued
            queued[event["n"]] = event["q"]
        elif kind == "pop":
            assert queued.pop(event["n"]) == event["q"]
        elif kind == "run":
            assert event["n"] not in running
            running.add(event["n"])
        elif kind == "ran":
            running.remove(event["n"])
    assert there == set(range(len(data["nodes"])))
    assert not queued
    assert not running
    assert not open_calls
    assert not passes
