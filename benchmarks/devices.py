"""Backward over four devices with kernels that release the interpreter: in parallel, and one after
the other.

Each device has a branch of the graph, and the gradient there passes a kernel that sleeps. This
measures the engine: on a machine with few cores, real kernels would compete for them.

`python -m benchmarks.devices` measures only JAX and prints JSON. `run` starts it in a separate
process, because XLA divides the host into devices at its start, for the whole process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

import plugrad
from benchmarks.measure import PLUGRAD, Budget, Effort, Row, Sample, interleave
from plugrad.library import custom_op
from plugrad.plugins import Backend, get_manager, hookimpl
from plugrad_cpu.backend import CpuBackend

DEVICES = 4
SECONDS = 0.05  # of each kernel
ONE_THREAD = "one thread"
FLAG = f"--xla_force_host_platform_device_count={DEVICES}"


def branches(backend: str) -> Any:
    """A loss on the CPU, from one branch on each device of a backend."""

    @custom_op(f"benchmarks::sleeping_on_{backend}", mutates_args=())
    def sleeping(x: plugrad.Tensor) -> plugrad.Tensor:
        time.sleep(SECONDS)
        return x * 1

    @custom_op(f"benchmarks::passing_on_{backend}", mutates_args=())
    def passing(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 1

    passing.register_autograd(lambda ctx, grad: sleeping(grad))
    total = plugrad.zeros(())
    for index in range(DEVICES):
        x = plugrad.ones(4, 4, device=f"{backend}:{index}", requires_grad=True)
        total = total + passing(x).sum().to("cpu")
    return total


def contestants(loss: Any) -> dict[str, Callable[[], object]]:
    def at_once() -> None:
        loss.backward(retain_graph=True)

    def in_turn() -> None:
        with plugrad.autograd.set_multithreading_enabled(False):
            loss.backward(retain_graph=True)

    return {PLUGRAD: at_once, ONE_THREAD: in_turn}


class FourDevices(CpuBackend):
    """Devices that are only names, with NumPy's arrays and kernels."""

    def __init__(self) -> None:
        super(CpuBackend, self).__init__("four", array_type=np.ndarray)

    def device_count(self) -> int:
        return DEVICES


class FourDevicesPlugin:
    """The plugin with the devices."""

    @hookimpl
    def plugrad_backends(self) -> list[type[Backend]]:
        return [FourDevices]


def on_jax(effort: Effort) -> dict[str, Sample] | None:
    """The figures of a process with four JAX devices; None without JAX."""
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("plugrad_jax") is None:
        return None
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.devices", *(["--smoke"] if effort.smoke else [])],
        env={**os.environ, "XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: Sample(**sample) for name, sample in found.items()}


def run(effort: Effort) -> list[Row]:
    measured: dict[str, dict[str, Sample] | None] = {}
    get_manager().register(FourDevicesPlugin(), "four")
    measured["NumPy's arrays"] = interleave(contestants(branches("four")), effort)
    measured["jax:0 to jax:3"] = on_jax(effort)
    return [
        Row(
            "devices",
            f"backward, {DEVICES} branches of {SECONDS * 1000:.0f} ms: {name}",
            "us",
            samples,
            Budget(0.4, ONE_THREAD),
        )
        for name, samples in measured.items()
        if samples is not None
    ]


if __name__ == "__main__":
    found = interleave(contestants(branches("jax")), Effort("--smoke" in sys.argv))
    print(json.dumps({name: asdict(sample) for name, sample in found.items()}))
