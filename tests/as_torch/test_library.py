"""`torch.library` under as_torch: kernels of PyTorch's programs, and keys of devices that are not
there. Oracle: PyTorch, which takes them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad_as_torch.own import library as ours
from plugrad_as_torch.own.cuda import absent
from tests.as_torch.conftest import Run

KEYS = ["CUDA", "AutogradCUDA", "XPU", "MPS", "PrivateUse1", "SparseCUDA", "QuantizedCPU"]


@pytest.mark.parametrize("key", KEYS)
def test_kernels_for_what_is_not_there_are_taken(key: str, torch_oracle: ModuleType) -> None:
    for name, Library in (("ours", ours.Library), ("theirs", torch_oracle.library.Library)):
        library: Any = Library(f"{name}_{key.lower()}", "DEF")
        library.define("f(Tensor x) -> Tensor")
        assert library.impl("f", lambda x: x, key) is None
        library._destroy()


def test_a_key_that_is_none_is_refused_as_in_pytorch(torch_oracle: ModuleType) -> None:
    for name, Library in (("ours", ours.Library), ("theirs", torch_oracle.library.Library)):
        library: Any = Library(f"{name}_no_key", "DEF")
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="could not parse dispatch key: Nope"):
            library.impl("f", lambda x: x, "Nope")
        library._destroy()


def test_kernels_get_tensors() -> None:
    library = ours.Library("as_torch_tensors", "DEF")
    for name in ("f", "g", "h"):
        library.define(f"{name}(Tensor x) -> Tensor")
    seen: list[type] = []

    def kernel(x: Any) -> Any:
        seen.append(type(x))
        return x.relu()

    library.impl("f", kernel, "CPU")
    ours.impl(library, "g", "CPU")(kernel)
    ours.impl("as_torch_tensors::h", "cpu", kernel, lib=library)
    x = plugrad.tensor([-1.0, 2.0])
    for name in ("f", "g", "h"):
        assert getattr(plugrad.ops.as_torch_tensors, name)(x).tolist() == [0.0, 2.0]
    assert seen == [plugrad.Tensor] * 3
    library._destroy()


def test_what_packages_touch_of_cuda_is_there_without_the_plugin(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_DISABLE", "plugrad-cuda")
    program = """
import plugrad.as_torch
plugrad.as_torch.install()
import torch
def annotated() -> torch.cuda.graph: ...
torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
torch.cuda.seed_all()
with torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
    print(torch.cuda.get_arch_list(), torch.cuda.is_available())
"""
    found = run("-c", program)
    assert found.stdout == "[] False\n"


def test_a_gpu_that_is_not_there_is_missed_when_its_block_begins() -> None:
    if plugrad.cuda.is_available():
        pytest.skip("about machines without a GPU")
    block = absent.device("cuda")
    assert block.idx == 0
    with pytest.raises(RuntimeError, match="cuda"):
        block.__enter__()
