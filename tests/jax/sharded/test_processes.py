"""Meshes of more than this process has: eight devices, and the devices of two processes.

Each test starts processes of its own, since JAX counts its devices once. What they print is
compared with one device's results.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECONDS = 120

# Gloo's threads write lines of their own, one into the other.
MARK = "| "

TRAINING = f"""
import functools
print = functools.partial(print, {MARK.strip()!r})
"""
TRAINING += """
import sys
import jax
import numpy as np
from jax.sharding import Mesh
import plugrad
import plugrad_jax
from plugrad import nn

if len(sys.argv) > 1:
    plugrad_jax.initialize("localhost:" + sys.argv[2], num_processes=2, process_id=int(sys.argv[1]))


def model():
    plugrad.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 2))


def step_of(net, optimizer):
    def step(x):
        loss = (net(x) - x[:, :2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    return step


def batch():
    return plugrad.arange(64.0).reshape(16, 4) / 64


RULES = {"0.(weight|bias)": ("model",), "3.weight": (None, "model")}


def show(name, *values):
    print(name, *[f"{value:.5f}" for value in values])
"""

EXPECTED = """
net = model().to("jax:0")
step = step_of(net, plugrad.optim.Adam(net.parameters(), lr=0.05))
x = batch().to("jax:0")
show("losses", *[step(x).item() for _ in range(4)])
show("weight", *net[3].weight.flatten().tolist())
"""

EIGHT = """
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
net = model().to("jax:0")
step = plugrad_jax.jit(step_of(net, plugrad.optim.Adam(net.parameters(), lr=0.05)))
x = batch().to("jax:0")
losses = [step(x).item() for _ in range(2)]  # before anything is spread
plugrad_jax.shard_parameters(net, mesh, RULES)
x = plugrad_jax.shard(x, mesh, ("data",))
losses += [step(x).item() for _ in range(2)]
show("losses", *losses)
show("weight", *net[3].weight.flatten().tolist())
print(step.cache_info().reasons[-1])
print([len(plugrad_jax.sharding_of(p).device_set) for p in net.parameters()])
print(*[tuple(plugrad_jax.sharding_of(p).spec) for p in net.parameters()])
"""

TWO = """
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
print(len(jax.devices()), plugrad.ones(2, device="jax:1").array.devices() <= {*jax.local_devices()})
net = model()
plugrad_jax.shard_parameters(net, mesh, RULES)
eager = step_of(net, plugrad.optim.Adam(net.parameters(), lr=0.05))
captured = plugrad_jax.jit(eager)
x = plugrad_jax.shard(batch(), mesh, ("data",))
show("losses", *[step(x).item() for step in (eager, captured, captured, eager)])
print(x)
for read in (x.tolist, x.cpu, lambda: bool((x > 0)[0, 0]) or x.sum(1).tolist()):
    try:
        read()
    except RuntimeError as error:
        print(str(error)[:54])
weight = net[3].weight.detach()
show("weight", *plugrad_jax.replicate(weight).flatten().tolist())
state = {name: plugrad_jax.unshard(each).cpu() for name, each in net.state_dict().items()}
net.load_state_dict(state)
print(tuple(plugrad_jax.sharding_of(weight).spec))
y = plugrad.ones(4, device="jax:0", requires_grad=True)
(plugrad_jax.shard(y, mesh, ("data",)) * 3).sum().backward()
print(y.grad.tolist())
rows = np.full((2, 4), jax.process_index(), np.float32)  # this process's rows of the batch
parts = jax.make_array_from_process_local_data(
    jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data")), rows
)
print(plugrad_jax.from_jax(parts).sum(0).tolist())
"""


def start(program: str, devices: int, *arguments: str) -> subprocess.Popen[str]:
    flags = f"--xla_force_host_platform_device_count={devices}"
    threads = str(32 * devices)  # see tests/conftest.py
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "NPROC": threads}
    command = [sys.executable, "-c", TRAINING + program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)


def printed(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """The lines that each process prints; no process is left behind."""
    try:
        done = [process.communicate(timeout=SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, done, strict=True):
        assert process.returncode == 0, errors
    outputs = [out.splitlines() for out, _ in done]
    return [[line[len(MARK) :] for line in out if line.startswith(MARK)] for out in outputs]


def free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return str(listening.getsockname()[1])


def numbers(line: str, name: str) -> list[float]:
    first, *rest = line.split()
    assert first == name
    return [float(each) for each in rest]


@pytest.fixture(scope="module")
def expected() -> tuple[list[float], list[float]]:
    ((losses, weight),) = printed([start(EXPECTED, 1)])
    return numbers(losses, "losses"), numbers(weight, "weight")


def test_eight_devices(expected: tuple[list[float], list[float]]) -> None:
    ((losses, weight, reason, counts, specs),) = printed([start(EIGHT, 8)])
    assert numbers(losses, "losses") == pytest.approx(expected[0], abs=1e-4)
    assert numbers(weight, "weight") == pytest.approx(expected[1], abs=1e-3)
    assert reason == "tensors are spread over devices now"
    assert counts == "[8, 8, 8, 8]"
    assert specs == "('model',) ('model',) (None, 'model') ()"


def test_two_processes(expected: tuple[list[float], list[float]]) -> None:
    port = free_port()
    both = printed([start(TWO, 2, str(number), port) for number in range(2)])
    assert both[0] == both[1]
    devices, losses, shown, *refused, weight, spec, grad, total = both[0]
    assert devices == "4 True"
    assert numbers(losses, "losses") == pytest.approx(expected[0], abs=1e-4)
    assert numbers(weight, "weight") == pytest.approx(expected[1], abs=1e-3)
    assert shown == "tensor(..., device='jax:0', size=(16, 4))"
    assert refused == ["this process has only some elements of a tensor that i"] * 3
    assert spec == "(None, 'model')"
    assert grad == "[3.0, 3.0, 3.0, 3.0]"
    assert total == "[2.0, 2.0, 2.0, 2.0]"
