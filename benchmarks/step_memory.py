"""The peak memory of a training step, above that of importing the library.

It is the peak of the resident set as the system counts it, in a separate process for each library.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.libraries import libraries
from benchmarks.measure import TORCH, Budget, Effort, Row, Sample

LAYERS, WIDTH, BATCH, STEPS = 12, 256, 1024, 5


def peak() -> float:
    """The process's peak so far, in megabytes. `ru_maxrss` would include its parent's."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def child(name: str) -> None:
    """Print the growth of the peak from steps with Adam; runs in a separate process."""
    library = next(found for found in libraries() if found.name == name)
    m = library.module
    nn, optim = m.nn, m.optim
    numbers = np.random.default_rng(0).standard_normal((BATCH, WIDTH), dtype=np.float32)
    before = peak()
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x = library.constant(numbers)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    print(peak() - before)


def growth(name: str) -> float:
    code = f"from benchmarks.step_memory import child; child({name!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(effort: Effort) -> list[Row]:
    rounds = 1 if effort.smoke else 3
    samples = {
        library.name: Sample.of([growth(library.name) for _ in range(rounds)])
        for library in libraries()
    }
    case = f"MLP of {LAYERS} layers of {WIDTH}, batch {BATCH}, Adam: peak above import"
    return [Row("step_memory", case, "MB", samples, Budget(0.45, TORCH))]
