"""What type checkers see of an installed plugrad; `make lint` checks the documentation."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plugrad

pytest.importorskip("mypy")
pytest.importorskip("plugrad_nn")
pytest.importorskip("plugrad_special")

PROGRAM = """
from typing import Any, assert_type

from numpy.typing import NDArray

import plugrad
import plugrad.linalg
import plugrad.nn.functional as F
import plugrad.optim.lr_scheduler
import plugrad.special
from plugrad import Tensor, nn, optim, return_types
from plugrad.autograd import Function, grad
from plugrad.autograd.functional import jacobian
from plugrad.func import vmap
from plugrad.nn.utils import clip_grad_norm_
from plugrad.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, 3)
x = plugrad.randn(4, 2)
model(x).square().mean().backward()
clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
assert_type(DataLoader(TensorDataset(x, x)), DataLoader[tuple[Tensor, ...]])

assert_type(x * 2 + 1, Tensor)
assert_type(x.sum(0, keepdim=True), Tensor)
assert_type(x.size(), plugrad.Size)
assert_type(x.size(0), int)
assert_type(x.item(), int | float | bool | complex)
assert_type(x.numpy(), NDArray[Any])
assert_type(plugrad.max(x), Tensor)
assert_type(plugrad.max(x, 0), return_types.max)
assert_type(x.sort(1).indices, Tensor)
assert_type(x.topk(1)[0], Tensor)
assert_type(plugrad.div(1.0, x), Tensor)
assert_type(plugrad.mul(x, 3, out=x), Tensor)
assert_type(plugrad.split(x, 2), tuple[Tensor, ...])
assert_type(nn.functional.relu(x), Tensor)
assert_type(F.relu(x), Tensor)
assert_type(plugrad.special.erfinv(x), Tensor)
assert_type(plugrad.linalg.inv(x), Tensor)
assert_type(plugrad.linalg.norm(x), Tensor)
assert_type(grad(x.sum(), x), tuple[Tensor, ...])
assert_type(grad(x.sum(), {"x": x}), dict[str, Tensor])
assert_type(jacobian(plugrad.sin, x), Tensor)
assert_type(vmap(plugrad.sin)(x), Tensor)


@plugrad.compile
def step(t: Tensor) -> Tensor:
    return (t * t).sum()


@plugrad.no_grad()
def evaluate(t: Tensor) -> Tensor:
    return step(t)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        return t * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


assert_type(evaluate(x), Tensor)

with plugrad.profiler.profile() as prof, plugrad.profiler.record_function("part") as part:
    step(x)
assert_type(prof, plugrad.profiler.profile)
assert_type(part, plugrad.profiler.record_function)
assert_type(prof.key_averages().table(), str)
with plugrad.autograd.profiler.profile() as older:
    step(x)
assert_type(older.table(), str | Any)
"""
# Each line after the imports is an error.
WRONG = """
import plugrad
import plugrad.nn
plugrad.zeros(2).sum(keepdim="no")
plugrad.nn.Linear("two", 3)
plugrad.gremlin(2)
plugrad.zeros(2).max(0).value
plugrad.special.gammma(2)
with plugrad.profiler.profile() as p: p.key_average()
"""


def test_a_typed_program_passes_and_mistakes_are_found(tmp_path: Path) -> None:
    """Outside of this project, because its configuration is for its own sources."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "."]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = re.findall(r"^(\w+\.py:\d+): error", found.stdout, re.MULTILINE)
    assert lines == [f"wrong.py:{n}" for n in range(4, 10)], found.stdout + found.stderr


def names_of(body: list[ast.stmt]) -> set[str]:
    """What a stub says that a module or class has."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def public(names: list[str]) -> set[str]:
    return {name for name in names if name.isidentifier() and not name.startswith("_")}


def test_the_stub_has_all_public_names() -> None:
    stub = Path(str(plugrad.__file__)).with_name("__init__.pyi")
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    # Modules that other tests imported are attributes by now.
    loaded = {name.removeprefix("plugrad.") for name in sys.modules}
    assert public(dir(plugrad)) - names_of(body) - loaded == set()
    (tensor,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    # Names of DTensors, which other tensors lack: plugrad-distributed has types for them.
    kinds = {name: type(value).__module__ for name, value in vars(plugrad.Tensor).items()}
    added = {name for name, module in kinds.items() if module.startswith("plugrad_")}
    assert public(dir(plugrad.Tensor)) - names_of(tensor.body) - added == set()


@pytest.mark.parametrize(
    "name", ["relu", "tensor", "Tensor.relu", "Tensor.backward", "Tensor.item"]
)
def test_editors_show_what_help_says(name: str) -> None:
    stub = Path(str(plugrad.__file__)).with_name("__init__.pyi")
    body: list[ast.stmt] = ast.parse(stub.read_text(encoding="utf-8")).body
    described: object = plugrad
    for part in name.split("."):
        described = getattr(described, part)
        node = next(n for n in body if getattr(n, "name", "") == part)
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        body = node.body
    assert ast.get_docstring(node) == inspect.getdoc(described)
