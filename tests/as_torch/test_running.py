"""Programs run on plugrad as they are: by `python -m`, `plugrad run`, pytest and `install()`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.as_torch.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "coming_from_pytorch.md"

PROGRAM = """
import importlib.metadata
import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.lr_scheduler import _LRScheduler
from torch.utils._pytree import tree_map

import plugrad

assert torch.Tensor is Tensor is plugrad.Tensor
assert torch.nn.modules.linear.Linear is nn.Linear is plugrad.nn.Linear
assert F.relu is plugrad.nn.functional.relu
assert issubclass(nn.BatchNorm2d, _BatchNorm)
assert torch.autograd.gradcheck(torch.sin, torch.ones(1, dtype=torch.double, requires_grad=True))
assert torch.__version__ == importlib.metadata.version("torch") == "2.13.0"
assert torch.__version__ >= "2.4" and torch.__version__ > (1, 9) and plugrad.__version__ != "2.13.0"
assert not torch.cuda.is_available() or torch.cuda.device_count()
assert not hasattr(torch, "capture")  # plugrad's own

@torch.jit.script
def double(x: Tensor) -> Tensor:
    return x * 2

@torch.compile(mode="reduce-overhead")
@torch.compiler.disable(recursive=False)
def triple(x):
    return x * 3

torch.backends.cudnn.benchmark = True
print(torch.backends.cudnn.benchmark, torch.jit.is_scripting(), torch.distributed.is_available())
print(double(torch.ones(2)), triple(torch.ones(1, dtype=torch.float64)))
print(torch.ops.aten.neg(2 * torch.ones(1)))
print(torch.float16, torch.Size([2, 3]), torch.ones(1).type(), torch.ones(2, 1).max(0))
print(__name__, sys.argv[1:], sys.path[0])
"""
PRINTED = """\
True False True
tensor([2., 2.]) tensor([3.], dtype=torch.float64)
tensor([-2.])
torch.float16 torch.Size([2, 3]) torch.FloatTensor torch.return_types.max(
values=tensor([1.]),
indices=tensor([0]))
"""


def test_a_script_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "program.py").write_text(PROGRAM)
    done = run("-m", "plugrad.as_torch", "inside/program.py", "-m", "--help")
    assert done.stdout == PRINTED + f"__main__ ['-m', '--help'] {tmp_path / 'inside'}\n"


def test_a_module_runs_with_its_options_and_exit_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, torch\nprint(torch.int8, sys.argv[1:])\nraise SystemExit(7)"
    )
    expected = "torch.int8 ['--help', '-x']\n"
    words = ("-m", "program", "--help", "-x")
    assert run("-m", "plugrad.as_torch", *words, code=7).stdout == expected
    pytest.importorskip("typer")
    assert run("-m", "plugrad.cli", "run", *words, code=7).stdout == expected


def test_messages_name_the_command_that_was_called(run: Run) -> None:
    pytest.importorskip("typer")
    for command in (("plugrad.as_torch",), ("plugrad.cli", "run")):
        called = "plugrad run" if len(command) == 2 else "python -m plugrad.as_torch"
        assert run("-m", *command, code=1).stderr.startswith(f"usage: {called} [")
        assert run("-m", *command, "--help").stdout.startswith(f"usage: {called} [")
        assert run("-m", *command, "no.py", code=1).stderr.startswith(f"{called}: can't open")


@pytest.mark.parametrize("words", [("program.py", "-x"), ("-m", "program", "-x")])
def test_the_cpu_draws_for_all_devices_if_asked_to(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, torch\n"
        "from plugrad.dispatch.local_state import current_state\n"
        "print(current_state().host_numbers, sys.argv[1:])"
    )
    assert run("-m", "plugrad.as_torch", "--host-numbers", *words).stdout == "True ['-x']\n"
    assert run("-m", "plugrad.as_torch", *words).stdout == "False ['-x']\n"


def test_an_error_of_the_program_is_told_as_python_tells_it(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    (tmp_path / "program.py").write_text("import torch\n\ntorch.sparse_coo_tensor")
    told = run("-m", "plugrad.cli", "run", "program.py", code=1).stderr.splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert 'program.py", line 3, in <module>' in told[1]
    assert told[-1].startswith("AttributeError: torch.sparse_coo_tensor is not in plugrad yet")


def test_pytest_runs_tests_of_pytorch_programs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_program.py").write_text(
        "import torch\n\ndef test_name():\n    assert str(torch.int8) == 'torch.int8'\n"
        "    assert type(torch.ones(1)).__module__ == 'plugrad'\n"
    )
    words = ("-p", "plugrad.as_torch", "-p", "no:cacheprovider", "-q", "test_program.py")
    assert "1 passed" in run("-m", "pytest", *words).stdout


def test_install_can_be_undone_and_refuses_beside_pytorch(run: Run) -> None:
    program = """
import sys, types
import plugrad.as_torch
before = list(sys.meta_path)
for _ in range(2):
    plugrad.as_torch.install()
    plugrad.as_torch.install()
    import torch.nn.functional
    print(plugrad.as_torch.is_installed(), repr(plugrad.float32))
    plugrad.as_torch.uninstall()
    plugrad.as_torch.uninstall()
    print(plugrad.as_torch.is_installed(), repr(plugrad.float32))
assert sys.meta_path == before and not [name for name in sys.modules if name.startswith("torch")]
sys.modules["torch"] = types.ModuleType("torch")
try:
    plugrad.as_torch.install()
except RuntimeError as error:
    print(error, plugrad.as_torch.is_installed(), repr(plugrad.float32))
"""
    expected = ["True torch.float32", "False plugrad.float32"] * 2
    *printed, refusal = run("-c", program).stdout.splitlines()
    assert printed == expected
    assert refusal.startswith("plugrad.as_torch.install(): PyTorch itself is imported in this")
    assert refusal.endswith("False plugrad.float32")


def test_the_pages_program_runs(run: Run, tmp_path: Path) -> None:
    (program,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    (tmp_path / "program.py").write_text(program)
    done = run("-m", "plugrad.as_torch", "program.py")
    assert done.stdout.startswith("Sequential(\n  (0): Linear(in_features=2, out_features=8")
    # As PyTorch prints it.
    last = "torch.Size([64, 2]) tensor([ 0.0316, -0.4927], dtype=torch.float64) 0.013\n"
    assert done.stdout.endswith(last)


SPAWNING = """
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torch.utils.data._utils.collate import collate, default_collate_fn_map
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

import torch.multiprocessing as mp
import torch.multiprocessing.spawn


class Names(Dataset):
    def __getitem__(self, index):
        return f"{torch.int8} {torch.Tensor.__module__} {get_worker_info().id}"

    def __len__(self):
        return 2


def fill(index, x):
    x[index] = torch.tensor(index + 1)


if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        print(list(DataLoader(Names(), None, num_workers=2, multiprocessing_context=method)))
    x = torch.zeros(2).share_memory_()
    mp.spawn(fill, (x,), nprocs=2)
    print(x)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(str, (torch.float16,)))
"""


def test_processes_that_are_started_anew_know_torch_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SPAWNING)
    done = run("-m", "plugrad.as_torch", "program.py")
    names = str([f"torch.int8 plugrad {worker}" for worker in range(2)])
    assert done.stdout == f"{names}\n" * 3 + "tensor([1., 2.])\ntorch.float16\n"
    assert done.stderr == ""
