"""The page of benchmarks keeps figures of an earlier run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import PLUGRAD, TORCH, Budget, Row, Sample
from benchmarks.report import read_rows

ROOT = Path(__file__).parents[2]


def row(benchmark: str) -> Row:
    samples = {PLUGRAD: Sample(2.0, 1.0), TORCH: Sample(4.0, 3.0)}
    return Row(benchmark, "a case", "us", samples, Budget(1.0, TORCH), plain=Sample(0.9, 0.8))


def written(folder: Path, *rows: Row) -> Path:
    path = folder / "earlier.json"
    path.write_text(json.dumps({"rows": [asdict(each) for each in rows]}))
    return path


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    plain = Row("loader", "another", "ms", {PLUGRAD: Sample(1.0, 1.0)})
    assert read_rows(written(tmp_path, row("sizes"), plain)) == [row("sizes"), plain]


def test_benchmarks_that_are_not_named_keep_their_figures(tmp_path: Path) -> None:
    earlier = written(tmp_path, row("loader"), row("profiler"), row("small_ops"))
    found, page = tmp_path / "found.json", tmp_path / "page.md"
    options = ["--earlier", earlier, "--json", found, "--markdown", page]
    command = [sys.executable, "-m", "benchmarks", "--smoke", *options, "profiler"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    first, *measured, last = read_rows(found)
    assert (first, last) == (row("small_ops"), row("loader"))
    assert {each.benchmark for each in measured} == {"profiler"}
    assert row("profiler") not in measured
    assert "* from an earlier run: loader, small_ops\n" in page.read_text()
