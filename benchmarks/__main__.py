"""`python -m benchmarks [--smoke] [--seconds S] [--json PATH] [--markdown PATH] [names...]`.

With `--plain PATH`, tables also show the ratios of another run, without the packages of fast
kernels:

    PLUGRAD_DISABLE=plugrad-native,plugrad-onednn python -m benchmarks --json PATH operators sizes

With `--earlier PATH`, benchmarks that are not named keep the figures of an earlier run:

    python -m benchmarks --earlier PATH --json PATH --markdown docs/performance.md large_arrays
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

# Both libraries get one thread: on arrays this small several threads would wait for each other, and
# the benchmarks compare the work per step. BLAS reads this when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks import (
    captured_steps,
    deep_graph,
    devices,
    import_time,
    loader,
    mlp_step,
    network_steps,
    operators,
    profiler,
    recording,
    small_ops,
    step_memory,
    transforms,
)
from benchmarks.kernels import bfloat16, convolutions, large_arrays, numerics, sizes
from benchmarks.measure import Effort, Row
from benchmarks.report import read_plain, read_rows, tables, write_json, write_markdown

BENCHMARKS: dict[str, Callable[[Effort], list[Row]]] = {
    "small_ops": small_ops.run,
    "operators": operators.run,
    "mlp_step": mlp_step.run,
    "network_steps": network_steps.run,
    "deep_graph": deep_graph.run,
    "sizes": sizes.run,
    "large_arrays": large_arrays.run,
    "convolutions": convolutions.run,
    "bfloat16": bfloat16.run,
    "profiler": profiler.run,
    "recording": recording.run,
    "devices": devices.run,
    "import_time": import_time.run,
    "step_memory": step_memory.run,
    "captured_steps": captured_steps.run,
    "transforms": transforms.run,
    "numerics": numerics.run,
    "loader": loader.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(BENCHMARKS)}")
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    parser.add_argument(
        "--seconds",
        type=float,
        default=Effort(False).most,
        metavar="S",
        help="the longest time for each library in a case (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures to this file")
    parser.add_argument(
        "--markdown", type=Path, metavar="PATH", help="write the tables to this file"
    )
    parser.add_argument(
        "--plain",
        type=Path,
        metavar="PATH",
        help="the JSON of a run without plugrad-native and plugrad-onednn, to show its ratios too",
    )
    parser.add_argument(
        "--earlier",
        type=Path,
        metavar="PATH",
        help="the JSON of an earlier run, with the rows of benchmarks that are not named",
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    if not arguments.seconds > 0:
        parser.error(f"argument --seconds: expected a number above 0, got {arguments.seconds:g}")
    if arguments.smoke:
        print("A smoke run: it only checks that everything runs; ignore its figures.")
    rows: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        found = BENCHMARKS[name](Effort(arguments.smoke, arguments.seconds))
        print(tables(found), flush=True)
        rows += found
    earlier: list[str] = []
    if arguments.earlier:
        measured = {row.benchmark for row in rows}
        others = [row for row in read_rows(arguments.earlier) if row.benchmark not in measured]
        earlier = list(dict.fromkeys(row.benchmark for row in others))
        rows += others
        rows.sort(key=lambda row: list(BENCHMARKS).index(row.benchmark))
    if arguments.json:
        write_json(arguments.json, rows)
    if arguments.markdown:
        plain = read_plain(arguments.plain, rows) if arguments.plain else ""
        write_markdown(arguments.markdown, rows, plain, earlier)


if __name__ == "__main__":
    main()
