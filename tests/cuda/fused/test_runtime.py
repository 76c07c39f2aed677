"""How kernels are launched on CuPy; the emulation replaces its compiled modules."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrad_cuda.fused import EXPRESSIONS, LAUNCHERS, CuPyRuntime, kernels
from plugrad_cuda.fused.runtime import OPTIONS, source_text
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import CPU, random


class FakeCuPy(ModuleType):
    """CuPy as far as a launch goes: NumPy's arrays, and modules that run in the emulation.

    Attributes:
        compiled: the kernels that were compiled.
        launches: grid, block and arguments of each launch.
    """

    def __init__(self, emulation: Emulation) -> None:
        super().__init__("cupy")
        self.emulation = emulation
        self.compiled: list[str] = []
        self.launches: list[tuple[Any, ...]] = []
        self.capturing = False
        stream = SimpleNamespace(is_capturing=lambda: self.capturing)
        self.cuda = SimpleNamespace(get_current_stream=lambda: stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.emulation.xp, name)

    def RawModule(self, *, code: str, options: Any, name_expressions: Any) -> Any:
        assert options == OPTIONS
        (source,) = (name for name in EXPRESSIONS if source_text(name) == code)
        self.compiled.extend(name_expressions)
        return SimpleNamespace(get_function=lambda kernel: self._function(source, kernel))

    def _function(self, source: str, kernel: str) -> Any:
        def launch(grid: Any, block: Any, args: Any) -> None:
            # The driver takes None for no argument at all.
            assert all(type(a) in (np.ndarray, int, float) for a in args)
            self.launches.append((grid, block, args))
            self.emulation.launch(source, kernel, *grid, block, args)

        return launch


@pytest.fixture
def cupy(emulation: Emulation, monkeypatch: pytest.MonkeyPatch) -> FakeCuPy:
    fake = FakeCuPy(emulation)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


def test_a_kernel_is_compiled_once_and_launched_often(cupy: FakeCuPy) -> None:
    table = kernels()
    for _ in range(3):
        x = random((3, 5))
        np.testing.assert_allclose(
            table["_softmax"](x, 1, False), CPU["_softmax"](x, 1, False), rtol=1e-5
        )
    assert cupy.compiled == ["softmax_rows<float, float, 0>"]
    assert [launch[:2] for launch in cupy.launches] == [((1,), (32, 4))] * 3


def test_a_missing_array_is_a_null_pointer(cupy: FakeCuPy) -> None:
    x = random((3, 5))
    out, _, _ = kernels()["native_layer_norm"](x, (5,), None, None, 1e-5)
    np.testing.assert_allclose(
        out, CPU["native_layer_norm"](x, (5,), None, None, 1e-5)[0], rtol=1e-5, atol=1e-6
    )
    assert cupy.launches[0][2][1:3] == (0, 0)


def test_grids_are_as_large_as_they_may_be(cupy: FakeCuPy) -> None:
    run = CuPyRuntime()
    run._kernels["huge"] = lambda *launch: cupy.launches.append(launch)
    run.launch("softmax", "huge", 2**40, (32, 1), ())
    assert cupy.launches == [((2**31 - 1,), (32, 1), ())]


def test_indices_are_looked_at_on_request_but_not_in_a_capture(cupy: FakeCuPy) -> None:
    assert not CuPyRuntime().may_wait()
    run = CuPyRuntime(check=True)
    assert run.may_wait()
    cupy.capturing = True
    assert not run.may_wait()


def test_what_is_not_taken_goes_to_the_kernel_beside(emulation: Emulation) -> None:
    x = np.arange(6).reshape(1, 2, 3)
    window = ((2, 2), (2, 2), (0, 0), (1, 1), (1, 1))
    beside = {"max_pool2d_with_indices": lambda *args: args}
    found = kernels(beside, emulation)["max_pool2d_with_indices"](x, *window)
    assert found == (x, *window)
    with pytest.raises(NotImplementedError, match="not implemented on CUDA for int64"):
        kernels({}, emulation)["max_pool2d_with_indices"](x, *window)


def test_every_fused_operator_has_a_kernel_on_the_cpu() -> None:
    assert LAUNCHERS.keys() <= CPU.keys()


def test_no_two_sources_have_a_kernel_of_the_same_name() -> None:
    names = [name for source in EXPRESSIONS.values() for name in source]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_sources_include_nothing_but_what_they_come_with(source: str) -> None:
    assert "#include" not in source_text(source)
