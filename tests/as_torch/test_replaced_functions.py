"""Functions that a program replaces in a module of PyTorch are those that layers call (oracle:
PyTorch, by the same program)."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

PROGRAM = """
import torch
import torch.nn.functional as F

names = ["relu", "max_pool2d", "adaptive_avg_pool1d", "conv1d", "conv_transpose2d", "linear"]
called = []

def counted(name, function):
    def count(*args, **kwargs):
        called.append(name)
        return function(*args, **kwargs)
    return count

originals = {name: getattr(F, name) for name in names}
for name in names:
    setattr(F, name, counted(name, originals[name]))

def run():
    torch.nn.ReLU()(torch.ones(2))
    torch.nn.MaxPool2d(2)(torch.ones(1, 2, 2))
    torch.nn.AdaptiveAvgPool1d(1)(torch.ones(1, 2))
    torch.nn.Conv1d(1, 1, 1)(torch.ones(1, 2))
    torch.nn.ConvTranspose2d(1, 1, 1)(torch.ones(1, 2, 2))
    torch.nn.Linear(2, 1)(torch.ones(2))

run()
for name in names:
    setattr(F, name, originals[name])
run()
print(sorted(called))
"""


def printed(prelude: str) -> str:
    command = [sys.executable, "-c", prelude + PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_layers_call_what_a_program_puts_into_functional(torch_oracle: ModuleType) -> None:
    here = printed("import plugrad.as_torch\nplugrad.as_torch.install()\n")
    assert here == printed("")
    assert here.count("'") == 2 * 6
