"""The figures as JSON and as Markdown tables."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module, metadata
from itertools import groupby
from pathlib import Path

from benchmarks.libraries import libraries
from benchmarks.measure import (
    EAGER,
    JAX,
    LOOP,
    NUMPY,
    PLUGRAD,
    TORCH,
    XLA,
    Budget,
    Row,
    Sample,
)
from benchmarks.verdict import draw, verdict

INTRODUCTION = """\
# Performance

plugrad compared with PyTorch and with the plain NumPy calls for the same work, measured in turns
in one process. A cell is the median of the rounds, with the fastest round in brackets; a ratio is
plugrad's figure over the other's, so less is better. A budget is the limit for plugrad's median;
it does not fail a build. The command below writes this page.
"""

# Explanations below a table.
REMARKS = {
    "large_arrays": """\
Both libraries read the same arrays. Between calls that follow each other, threads of plugrad-native
stay awake for 50 microseconds, those of PyTorch for milliseconds; so on two threads a pause comes
before each round. Of 1e7 elements, most of PyTorch's time goes to fresh pages for the result;
plugrad-native keeps the memory of such results for the next ones.
""",
    "convolutions": """\
The C library may give PyTorch's results of 4 MB back to the system after each call, which then
takes twice as long. With `MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000` it
does not: then `16 to 32 channels, forward` takes plugrad 0.85 times as long as PyTorch on one
thread, and 0.75 times on two.
""",
    "bfloat16": """\
Matrices are 1024 x 1024, rows 100 x 1024. oneDNN computes products in both libraries.
plugrad-native computes the rest by its loops of float32; sums and rows as a whole, with a cast
before and after.
""",
    "numerics": """\
Operators that take more than 1.2 times as long as in PyTorch, and the reasons:

* Transforms of many rows of 64 numbers, and `rfft2`: FFTW is slower than MKL by this factor.
* `lstsq` in float32: LAPACK's driver, copies to Fortran order, and a check of the rank.
* `bincount` is NumPy's: one pass finds the largest number, another counts.

The figures include the extras listed above. Without them:

* Random numbers: NumPy has no fused multiplication and addition, so `randn` in float32 computes in
  float64 and rounds once more, to give the same numbers bit for bit. It takes four to
  five times as long as in PyTorch, `rand` 1.2 to 1.8 times.
* Transforms are SciPy's, or NumPy's: up to 1.7 times as long as PyTorch's for large powers of two,
  and two to six times for many short rows.
* Convolutions are matrix products in which one dimension is the number of filters; `conv3d` takes
  twice as long as in PyTorch.
* `max_pool1d` takes 2.3 to 2.5 times as long: it makes passes over every second element, where
  PyTorch's loop runs in registers.
* Attention that is not causal makes passes over blocks in the cache, where PyTorch's run in
  registers.
""",
}


def environment() -> dict[str, str]:
    """The conditions of the measurement."""
    origin = import_module("plugrad.tensor.base").__file__ or ""
    found = {
        "command": shlex.join(["python", "-m", module_run(), *sys.argv[1:]]),
        "plugrad": f"{import_module('plugrad').__version__}, "
        f"{'interpreted' if origin.endswith('.py') else 'compiled'} core",
        "Python": platform.python_version(),
        "NumPy": metadata.version("numpy"),
        "extras": extras(),
        "machine": f"{os.cpu_count()} cores, {processor()}",
    }
    if hasattr(os, "getloadavg"):
        # The run itself keeps the cores busy: a load above their number means that other programs
        # did too.
        found["load average"] = f"{os.getloadavg()[2]:.1f} over the last 15 minutes"
    for library in libraries():
        if library.name == TORCH:
            threads = library.module.get_num_threads()
            found[TORCH] = f"{library.module.__version__}, {threads} threads"
    return found


def module_run() -> str:
    """The command after `python -m`."""
    spec = getattr(import_module("__main__"), "__spec__", None)
    return spec.name.removesuffix(".__main__") if spec else "benchmarks"


def extras() -> str:
    """The packages that make the CPU backend faster, if installed and not disabled."""
    found = []
    disabled = os.environ.get("PLUGRAD_DISABLE", "").split(",")
    for name in ("plugrad-native", "plugrad-onednn", "scipy", "numba", "pyfftw"):
        if name in disabled:
            continue
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found) or "none"


def processor() -> str:
    """The processor's name, if the system provides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write_json(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"environment": environment(), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def read_rows(path: Path) -> list[Row]:
    """The rows of an earlier run, from its JSON file."""
    rows = []
    for given in json.loads(path.read_text())["rows"]:
        samples, ratios = (
            {name: Sample(**found) for name, found in given.pop(key).items()}
            for key in ("samples", "ratios")
        )
        budget, plain = given.pop("budget"), given.pop("plain")
        rows.append(
            Row(
                **given,
                samples=samples,
                budget=Budget(**budget) if budget else None,
                ratios=ratios,
                plain=Sample(**plain) if plain else None,
            )
        )
    return rows


def read_plain(path: Path, rows: Sequence[Row]) -> str:
    """Add to rows the ratio of a run without the packages of fast kernels, read from `path`.

    Returns the description of that run.
    """
    content = json.loads(path.read_text())
    found = {(row["benchmark"], row["case"]): row["ratios"].get(TORCH) for row in content["rows"]}
    for row in rows:
        ratio = found.get((row.benchmark, row.case))
        row.plain = Sample(**ratio) if ratio else None
    return str(content["environment"]["extras"])


def write_markdown(
    path: Path, rows: Sequence[Row], plain: str = "", earlier: Sequence[str] = ()
) -> None:
    """The report.

    Args:
        plain: what `read_plain` returned, if there was such a run.
        earlier: benchmarks with rows of an earlier run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = environment()
    if plain:
        found["plain"] = f"another run with these extras: {plain}"
    if earlier:
        found["from an earlier run"] = ", ".join(earlier)
    about = "\n".join(
        f"* {name}: `{value}`" if name == "command" else f"* {name}: {value}"
        for name, value in found.items()
    )
    picture = path.parent / "pictures" / "performance.svg"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(draw(rows))
    short = verdict(rows, f"pictures/{picture.name}")
    path.write_text(f"{INTRODUCTION}\n{short}\n## How it was measured\n\n{about}\n{tables(rows)}")


def tables(rows: Sequence[Row]) -> str:
    """One Markdown table for each benchmark."""
    parts: list[str] = []
    for name, group in groupby(rows, key=lambda row: row.benchmark):
        found = list(group)
        contestants = [
            contestant
            for contestant in (PLUGRAD, TORCH, NUMPY, JAX, EAGER, XLA, LOOP)
            if any(contestant in row.samples for row in found)
        ]
        others = list(dict.fromkeys(key for row in found for key in row.ratios))
        plain = any(row.plain for row in found)
        head = ["case", "unit", *contestants, *(f"to {other}" for other in others)]
        head += [f"plain, to {TORCH}"] * plain + ["budget"]
        body = [
            [
                row.case,
                row.unit,
                *(cell(row.samples.get(contestant)) for contestant in contestants),
                *(cell(row.ratios.get(other)) for other in others),
                *[cell(row.plain)] * plain,
                budget(row),
            ]
            for row in found
        ]
        lines = [head, ["---"] * 2 + ["---:"] * (len(head) - 3) + ["---"], *body]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        remarks = f"\n{REMARKS[name]}" if name in REMARKS else ""
        parts.append(f"\n## {name}\n\n{table}\n{remarks}")
    return "".join(parts)


def cell(sample: Sample | None) -> str:
    if sample is None:
        return ""
    if sample.median == sample.minimum:
        return number(sample.median)
    return f"{number(sample.median)} ({number(sample.minimum)})"


def number(value: float) -> str:
    """Three significant digits, without exponents."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def budget(row: Row) -> str:
    """The limit and whether the median keeps it."""
    figure = row.budget_figure()
    if row.budget is None:
        return ""
    against = f" to {row.budget.against}" if row.budget.against else f" {row.unit}"
    limit = f"{row.budget.limit:g}{against}"
    if figure is None:
        return f"{limit}: not measured"
    return f"{limit}: {'kept' if figure <= row.budget.limit else 'missed'}"
