"""plugrad-cuda's runtime over a fake of CuPy, which records the calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend, find_backend
from plugrad_cpu.memory import element_offset
from plugrad_cuda import library, memory, streams
from plugrad_cuda.backend import CudaBackend
from plugrad_cuda.generator import CudaGenerator
from tests.cuda.runtime.fake_cupy import Array, FakeCupy, fake_cupyx
from tests.cuda.runtime.philox import PhiloxOnHost


def _forget() -> None:
    library.cupy.cache_clear()
    library._counted.cache_clear()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[FakeCupy], FakeCupy]]:
    """Replaces CuPy by a fake."""
    deactivate_backend("cuda")  # other tests may have imported it and cached that there is no GPU

    def put(fake: FakeCupy) -> FakeCupy:
        monkeypatch.setitem(sys.modules, "cupy", fake)
        monkeypatch.setitem(sys.modules, "cupyx", fake_cupyx())
        _forget()
        return fake

    yield put
    _forget()


@pytest.fixture
def cupy(install: Callable[[FakeCupy], FakeCupy]) -> Iterator[FakeCupy]:
    """Two GPUs. Caches are cleared afterwards, because tests of a real GPU may follow."""
    _forget_memory_and_streams()
    yield install(FakeCupy())
    _forget_memory_and_streams()


def _forget_memory_and_streams() -> None:
    memory.lent._used.clear()
    memory.lent._waiting.clear()
    streams._chosen.streams.clear()


class CudaOverFake(CudaBackend):
    """The backend with the CPU's kernels on the fake's arrays."""

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        kernels = {**find_backend("cpu").kernels, "rand": _rand}
        return {name: _wrapped(kernel) for name, kernel in kernels.items()}

    def as_array(self, value: Any) -> Any:
        return library.cupy().made(np.asarray(value))

    def make_generator(self, index: int) -> CudaGenerator:
        return CudaGenerator(index, PhiloxOnHost())

    def storage_offset(self, array: Any) -> int:
        return element_offset(array)


def _rand(size: Any, generator: CudaGenerator, dtype: Any, device: int) -> Any:
    return generator.rng.random(size, dtype=dtype)


def _wrapped(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        arrays = [a for a in args if isinstance(a, Array)]
        cuda = library.cupy().cuda
        index = arrays[0].data.device_id if arrays else cuda.runtime.getDevice()
        with cuda.Device(index):
            library.cupy().log.append(("kernel", cuda.get_current_stream().name))
            return kernel(*args)

    return run


@pytest.fixture
def cuda(cupy: FakeCupy) -> Iterator[FakeCupy]:
    """The backend "cuda" over two GPUs."""
    ENGINE.stop()
    activate_backend(CudaOverFake())
    yield cupy
    ENGINE.stop()
    deactivate_backend("cuda")
