"""plugrad-cuda's messages without a usable GPU: the reason, and how to fix it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad_cuda import cuda, library
from plugrad_cuda.backend import CudaBackend
from tests.cuda.runtime.fake_cupy import FakeCupy

Install = Callable[[FakeCupy], FakeCupy]


def test_without_a_driver(install: Install) -> None:
    install(FakeCupy(driver=0))
    backend = CudaBackend()
    assert backend.device_count() == 0
    assert str(backend.problem()).startswith("driver not found: install NVIDIA's driver")
    assert backend.describe() == {"CuPy": "14.2", "CUDA runtime": "12.9", "driver": "none"}


def test_kernels_can_be_told_without_a_gpu() -> None:
    code = "from plugrad_cuda.backend import CudaBackend as B; k = B().kernels();"
    check = "assert {'mul', 'sum', '_softmax', 'convolution'} <= k.keys()"
    assert subprocess.run([sys.executable, "-c", code + check]).returncode == 0


def test_without_cupy(monkeypatch: pytest.MonkeyPatch, install: Install) -> None:
    install(FakeCupy())
    monkeypatch.setitem(sys.modules, "cupy", None)
    library.cupy.cache_clear()
    assert library.device_count() == 0
    assert "pip install 'plugrad-cuda[cuda12x]'" in str(library.problem())
    assert library.facts() == {}
    assert dict(CudaBackend().kernels()) == {}


def test_with_a_driver_that_is_too_old(install: Install) -> None:
    install(FakeCupy(count=0, driver=11080))
    assert "the driver is for CUDA 11.8, CuPy for 12.9" in str(library.problem())
    assert "pip install cupy-cuda11x" in str(library.problem())


def test_with_gpus_that_are_hidden(monkeypatch: pytest.MonkeyPatch, install: Install) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    install(FakeCupy(count=0))
    assert "CUDA_VISIBLE_DEVICES is ''" in str(library.problem())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "`nvidia-smi` lists what it sees" in str(library.problem())


def test_a_driver_that_comes_later_is_found(install: Install) -> None:
    fake = install(FakeCupy(driver=0))
    assert library.device_count() == 0
    fake.driver = 12090
    assert library.device_count() == 2
    assert library.problem() is None


def test_choosing_it_raises_why(install: Install) -> None:
    import plugrad

    class WithoutKernels(CudaBackend):
        def kernels(self) -> dict[str, Any]:
            return {}

    install(FakeCupy(driver=0))
    activate_backend(WithoutKernels())
    try:
        for choose in (
            lambda: plugrad.zeros(2, device="cuda"),
            lambda: plugrad.ones(2).cuda(),
            lambda: plugrad.ones(2).to("cuda:1"),
        ):
            with pytest.raises(RuntimeError, match="'cuda' has no device: driver not found"):
                choose()
    finally:
        deactivate_backend("cuda")


@pytest.mark.parametrize(
    "ask",
    [
        cuda.current_device,
        cuda.current_stream,
        cuda.synchronize,
        cuda.Stream,
        cuda.Event,
        cuda.get_device_name,
        cuda.mem_get_info,
        cuda.init,
        lambda: cuda.set_device(0),
        lambda: cuda.capture(lambda: None),
        lambda: cuda.get_rng_state(),
    ],
)
def test_what_needs_a_gpu_says_why_there_is_none(ask: Any, install: Install) -> None:
    install(FakeCupy(driver=0))
    with pytest.raises(RuntimeError, match="has no device: driver not found"):
        ask()


def test_what_programs_ask_before_is_answered(install: Install) -> None:
    install(FakeCupy(driver=0))
    assert not cuda.is_available()
    assert not cuda.is_initialized()
    assert cuda.device_count() == 0
    assert cuda.memory_allocated() == cuda.memory_reserved() == cuda.max_memory_allocated() == 0
    assert dict(cuda.memory_stats()) == {}
    assert not cuda.is_current_stream_capturing()
    assert not cuda.is_bf16_supported()
    cuda.manual_seed(1)
    cuda.manual_seed_all(1)
    cuda.empty_cache()
    with cuda.device(None), cuda.stream(None):
        pass


def test_cupy_is_imported_only_when_somebody_asks() -> None:
    code = "import sys, plugrad, plugrad_cuda.plugin as p; p.plugrad_backends()[0](); plugrad.cuda;"
    check = "sys.exit('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code + check]).returncode == 0
