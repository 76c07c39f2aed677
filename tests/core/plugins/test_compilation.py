"""`plugrad.compile` asks the backend, and does without where that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend
from plugrad_cpu.backend import CpuBackend


class Compiling(CpuBackend):
    """Counts calls of what it made one program."""

    def __init__(self) -> None:
        Backend.__init__(self, "compiling", array_type=plugrad.ones(1).numpy().__class__)
        self.seen: list[dict[str, Any]] = []

    def jit(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        self.seen.append(options)
        return lambda *args: ("compiled", function(*args))


@pytest.fixture
def compiling() -> Iterator[Compiling]:
    backend = Compiling()
    activate_backend(backend)
    yield backend
    deactivate_backend("compiling")


def double(x: Any) -> Any:
    return x * 2


def test_a_backend_without_a_compiler_makes_no_difference() -> None:
    assert plugrad.compile(double, device="cpu") is double


def test_the_backend_of_the_device_compiles(compiling: Compiling) -> None:
    assert "jit" in compiling.capabilities()
    assert plugrad.compile(double, device="compiling", donate=False)(2) == ("compiled", 4)
    assert compiling.seen == [{"donate": False}]


def test_the_default_device_is_asked(compiling: Compiling) -> None:
    with plugrad.device("compiling"):
        assert plugrad.compile(double)(2) == ("compiled", 4)
    assert plugrad.compile(double)(2) == 4


def test_it_is_a_decorator_with_options(compiling: Compiling) -> None:
    @plugrad.compile(device="compiling", name="twice")
    def twice(x: Any) -> Any:
        return x * 2

    assert twice(3) == ("compiled", 6)
    assert compiling.seen == [{"name": "twice"}]


def test_a_module_is_no_step() -> None:
    with pytest.raises(TypeError, match="whole step, got the module Linear"):
        plugrad.compile(plugrad.nn.Linear(2, 2))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function, got int"):
        plugrad.compile(3)
