"""How long `import plugrad` takes on top of `import numpy`, in fresh processes."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.libraries import libraries
from benchmarks.measure import NUMPY, PLUGRAD, TORCH, Budget, Effort, Row, Sample

MODULES = {PLUGRAD: "plugrad", TORCH: "torch"}
# Milliseconds for both parts: NumPy, then the library.
CHILD = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import {module}
print((middle - start) * 1e3, (time.perf_counter() - middle) * 1e3)
"""


def import_times(module: str) -> tuple[float, float]:
    code = CHILD.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numpy_time, own_time = map(float, done.stdout.split())
    return numpy_time, own_time


def run(effort: Effort) -> list[Row]:
    rounds = 2 if effort.smoke else 15
    names = [library.name for library in libraries()]
    values: dict[str, list[float]] = {name: [] for name in (*names, NUMPY)}
    for _ in range(rounds):
        for name in names:
            numpy_time, own_time = import_times(MODULES[name])
            values[name].append(own_time)
            values[NUMPY].append(numpy_time)
    samples = {name: Sample.of(found) for name, found in values.items()}
    return [Row("import_time", "import, above import numpy", "ms", samples, Budget(80))]
