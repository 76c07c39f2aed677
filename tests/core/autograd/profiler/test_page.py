"""The page of a profile: a flame graph for each thread, and the memory held over time."""

from __future__ import annotations

import re
from pathlib import Path

import plugrad
from plugrad.autograd import profiler


def page_of(path: Path, profile_memory: bool = False) -> str:
    with profiler.profile(profile_memory=profile_memory) as prof:
        x = plugrad.ones(2, 2, requires_grad=True)
        with profiler.record_function("<mine>"):
            (x @ x).relu().sum().backward()
    prof.export_html(str(path))
    return path.read_text(encoding="utf-8")


def test_every_event_has_a_bar_below_that_within_which_it_ran(tmp_path: Path) -> None:
    text = page_of(tmp_path / "page.html")
    found = re.findall(r'y="(\d+)" width="[^"]*" height="18"><title>(.*?): \d', text)
    rows = {name: int(y) for y, name in found}
    assert rows["&lt;mine&gt;"] == 0
    assert rows["plugrad::matmul"] == 18
    assert "SumBackward0" in text


def test_bars_lie_within_the_page(tmp_path: Path) -> None:
    text = page_of(tmp_path / "page.html")
    bars = re.findall(r'<svg x="([\d.]+)%" y="\d+" width="([\d.]+)%"', text)
    assert bars
    assert all(0 <= float(x) <= float(x) + float(width) <= 100.02 for x, width in bars)


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    assert "http" not in page_of(tmp_path / "page.html")


def test_memory_is_shown_where_it_was_recorded(tmp_path: Path) -> None:
    assert "<polyline" not in page_of(tmp_path / "page.html")
    assert "<polyline" in page_of(tmp_path / "page.html", profile_memory=True)
