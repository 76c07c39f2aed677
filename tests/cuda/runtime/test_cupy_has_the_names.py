"""CuPy has every name of the fake, so it has every name that the runtime uses."""

from __future__ import annotations

import inspect
from typing import Any

import cupy
import cupyx
import pytest

from plugrad_cuda import library
from tests.cuda.runtime import fake_cupy
from tests.cuda.runtime.fake_cupy import FakeCupy

FAKE = FakeCupy()
# The fake's own names, which tests read.
OWN = {
    *("name", "fake", "mem", "recorded", "number", "captured", "disable_timing", "bytes", "log"),
    *("priority", "device_id", "ptr", "pool", "holder", "done", "no_waiting", "made", "properties"),
    *(
        "current",
        "device",
        "device_count",
        "null",
        "count",
        "driver",
        "local",
        "pinned",
        "allocator",
    ),
    *("capturing", "busy", "runtime_version"),
}


def names(thing: Any) -> list[str]:
    return [name for name in vars(thing) if not name.startswith("_") and name not in OWN]


@pytest.mark.parametrize("name", [*names(FAKE), *names(FakeCupy)])
def test_names_of_cupy(name: str) -> None:
    assert hasattr(cupy, name)


@pytest.mark.parametrize("name", names(FAKE.cuda))
def test_names_of_cupy_cuda(name: str) -> None:
    assert hasattr(cupy.cuda, name)


@pytest.mark.parametrize("name", names(FAKE.cuda.runtime))
def test_names_of_the_runtime(name: str) -> None:
    assert hasattr(cupy.cuda.runtime, name)


@pytest.mark.parametrize(
    ("fake", "real"),
    [
        (fake_cupy.FakeStream, cupy.cuda.Stream),
        (fake_cupy.FakeEvent, cupy.cuda.Event),
        (fake_cupy.FakePool, cupy.cuda.MemoryPool),
        (fake_cupy.Pointer, cupy.cuda.MemoryPointer),
        (fake_cupy.Array, cupy.ndarray),
        (FAKE.cuda.Device, cupy.cuda.Device),
    ],
)
def test_methods_of_cupy_s_classes(fake: type, real: type) -> None:
    for name in names(fake):
        assert hasattr(real, name), f"{real.__name__}.{name}"


def test_attributes_of_cupy_s_classes() -> None:
    for real, attributes in (
        (cupy.cuda.Stream, ("priority", "done")),
        (cupy.cuda.Event, ("done",)),
        (cupy.cuda.Device, ("id", "mem_info")),
        (cupy.cuda.MemoryPointer, ("mem", "ptr", "device_id")),
        (cupy.ndarray, ("device", "data")),
        (cupy.cuda.Graph, ("launch", "debug_dot_str")),
        (cupyx, ("empty_pinned", "empty_like_pinned")),
        (cupy, ("sqrt", "log", "log1p", "cos", "sin", "concatenate", "zeros")),
    ):
        for name in attributes:
            assert hasattr(real, name), name
    assert "null" in vars(cupy.cuda.Stream) or hasattr(cupy.cuda.Stream, "null")
    assert hasattr(cupy.cuda.Stream, "from_external")


def test_arguments_that_cupy_s_functions_take() -> None:
    said = inspect.signature(cupy.cuda.Stream.__init__)
    assert {"non_blocking", "priority"} <= set(said.parameters)
    said = inspect.signature(cupy.cuda.Event.__init__)
    assert {"block", "disable_timing", "interprocess"} <= set(said.parameters)
    assert "device_id" in str(cupy.cuda.get_current_stream.__doc__)
    for argument in ("stream", "out", "blocking"):
        assert argument in str(cupy.ndarray.get.__doc__)


def test_the_real_library_answers_with_or_without_a_gpu() -> None:
    library.cupy.cache_clear()
    library._counted.cache_clear()
    assert library.facts()["CuPy"] == cupy.__version__
    assert (library.problem() is None) == (library.device_count() > 0)
