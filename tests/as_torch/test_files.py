"""Programs that save and load run unchanged: torch.save, torch.serialization, safetensors.torch."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.as_torch.conftest import Run

PROGRAM = """
import io, pickle
import torch
from torch import nn

class Config:
    def __init__(self):
        self.width = 3

model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
torch.save({"model": model.state_dict(), "epoch": 3}, "checkpoint.pt")
checkpoint = torch.load("checkpoint.pt", map_location=torch.device("cpu"))
model.load_state_dict(checkpoint["model"])
print(open("checkpoint.pt", "rb").read(2), checkpoint["epoch"], type(checkpoint["model"]).__name__)

torch.save(model, "model.pt")
print(torch.load("model.pt", weights_only=False)[0])

file = io.BytesIO()
torch.save([Config(), torch.ones(2)], file)
file.seek(0)
try:
    torch.load(file)
except pickle.UnpicklingError as error:
    print("torch.serialization.add_safe_globals([__main__.Config])" in str(error))
file.seek(0)
with torch.serialization.safe_globals([Config]):
    print(torch.load(file)[0].width)
print(torch.serialization.get_default_load_endianness(), torch.storage.UntypedStorage(2).nbytes())
print(torch.serialization.get_unsafe_globals_in_checkpoint("model.pt") != [])
print(isinstance(torch.ones(1).storage(), torch.FloatStorage))
"""


@pytest.mark.filterwarnings("ignore")
def test_a_program_that_saves_prints_the_same_with_both(
    run: Run, tmp_path: Path, torch_oracle: ModuleType
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ours = run("-m", "plugrad.as_torch", "program.py").stdout
    state = torch_oracle.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["model"]["0.weight"].shape == (3, 2)
    assert run("program.py").stdout == ours


SAFETENSORS = """
import torch
from torch import nn
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

names = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "uint16", "bool"]
tensors = {name: torch.tensor([[1, 0]]).to(getattr(torch, name)) for name in names}
tensors["turned"] = torch.arange(6.0).view(2, 3).t().contiguous()
save_file(tensors, "x.safetensors", metadata={"format": "pt"})
for found in (load_file("x.safetensors"), load(save(tensors))):
    print(all(found[key].dtype == x.dtype for key, x in tensors.items()))
    print(all(torch.equal(found[key], x) for key, x in tensors.items()))
with safe_open("x.safetensors", framework="pt", device="cpu") as file:
    print(file.metadata(), file.get_slice("turned")[1:, 0].tolist())

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(2, 2), nn.Linear(2, 2)
        self.decoder.weight = self.encoder.weight

model, again = Tied(), Tied()
try:
    save_file(model.state_dict(), "tied.safetensors")
except RuntimeError as error:
    print("share memory" in str(error))
save_model(model, "tied.safetensors")
print(load_model(again, "tied.safetensors"))
print(torch.equal(again.decoder.weight, model.encoder.weight))
print(sorted(load_file("tied.safetensors")))
"""


def test_safetensors_torch_works(run: Run, tmp_path: Path, torch_oracle: ModuleType) -> None:
    (tmp_path / "program.py").write_text(SAFETENSORS)
    ours = run("-m", "plugrad.as_torch", "program.py").stdout
    assert ours == run("program.py").stdout
    assert "False" not in ours


def test_downloads_and_logs_are_where_programs_import_them(run: Run) -> None:
    program = """
import plugrad.as_torch
plugrad.as_torch.install()
import pathlib, torch, torch.hub
from torch.hub import load_state_dict_from_url
from torch.utils.model_zoo import load_url
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
torch.save({"w": torch.ones(2)}, "w.pth")
torch.hub.set_dir("hub")
url = pathlib.Path("w.pth").absolute().as_uri()
print(load_state_dict_from_url(url, progress=False)["w"], load_url(url)["w"])
print(list(pathlib.Path("hub").rglob("*.pth")))
try:
    from torch.utils.tensorboard import SummaryWriter
    print(SummaryWriter.__name__)
except ImportError as error:
    print("tensorboardX" in str(error))
"""
    lines = run("-c", program).stdout.splitlines()
    assert lines[0] == "tensor([1., 1.]) tensor([1., 1.])"
    assert "w.pth" in lines[1]
    assert lines[2] in ("SummaryWriter", "True")


def test_a_hubconf_that_imports_torch_runs_in_such_a_program(run: Run) -> None:
    program = """
import plugrad.as_torch
plugrad.as_torch.install()
import pathlib, torch
pathlib.Path("hubconf.py").write_text(
    "dependencies = ['torch']\\n"
    "import torch\\n"
    "def net(width): return torch.nn.Linear(width, 1)\\n"
)
print(torch.hub.load(".", "net", 3, source="local"))
"""
    assert run("-c", program).stdout == "Linear(in_features=3, out_features=1, bias=True)\n"
