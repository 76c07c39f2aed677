"""What a backend tells about itself, kernels that others bring to it, and errors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, deactivate_backend
from plugrad.errors import OperatorNotFoundError, PluginError
from plugrad.plugins import Backend, DeviceQueue, Generator, kernel


class Small(Backend):
    """NumPy under another name, with methods as kernels."""

    def __init__(self, **options: Any) -> None:
        super().__init__("small", array_type=np.ndarray, **options)

    @kernel("add")
    def add(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    @kernel("mul")
    def mul(self, a: Any, b: Any) -> Any:
        return np.multiply(a, b)

    def as_array(self, value: Any) -> Any:
        return np.asarray(value)

    def native_dtype(self, dtype: Any) -> Any:
        if dtype.is_complex:
            raise TypeError(f"no {dtype}")
        return dtype.numpy


@pytest.fixture
def small() -> Iterator[ActiveBackend]:
    yield activate_backend(Small())
    deactivate_backend("small")


def test_marked_methods_of_the_backend_are_its_kernels(small: ActiveBackend) -> None:
    assert set(small.kernels) == {"add", "mul"}
    x = plugrad.tensor([1.0, 2.0], device="small")
    assert (x + x * x).tolist() == [2.0, 6.0]


def test_a_misspelt_kernel_is_refused() -> None:
    class Misspelt(Small):
        @kernel("mull")
        def oops(self, a: Any, b: Any) -> Any: ...

    with pytest.raises(PluginError, match=r"backend 'small' has a kernel for 'mull'.*'mul'"):
        activate_backend(Misspelt())


def test_dtypes_are_those_that_have_a_native_one(small: ActiveBackend) -> None:
    found = small.backend.dtypes()
    assert plugrad.float32 in found
    assert plugrad.complex64 not in found


def test_capabilities_follow_from_what_is_overridden() -> None:
    class More(Small):
        def make_generator(self, index: int) -> Any: ...

        def make_queue(self, index: int) -> DeviceQueue:
            return DeviceQueue()

        def from_dlpack(self, source: Any, index: int) -> Any: ...

        def strides(self, array: Any) -> tuple[int, ...]:
            return ()

        def compile(self, step: Any) -> Any: ...

    assert Small().capabilities() == {"mutable"}
    assert Small(mutable=False).capabilities() == frozenset()
    assert More().capabilities() == {
        "mutable", "random", "streams", "dlpack", "strides", "compile",
    }  # fmt: skip


def test_the_cpu_generator_is_a_generator() -> None:
    assert isinstance(plugrad.default_generator, Generator)


class TestKernelsOfOthers:
    def test_they_are_used(self, small: ActiveBackend) -> None:
        x = plugrad.tensor([0.0], device="small")
        with pytest.raises(OperatorNotFoundError):
            x.sin()
        small.add_kernels({"sin": np.sin}, "plugrad-waves 1.0")
        assert x.sin().tolist() == [0.0]
        small.remove_kernels("plugrad-waves 1.0")
        with pytest.raises(OperatorNotFoundError):
            x.sin()

    def test_a_second_claim_names_both(self, small: ActiveBackend) -> None:
        small.add_kernels({"sin": np.sin}, "plugrad-waves 1.0")
        with pytest.raises(PluginError, match=r"plugrad-tides 2.0 and plugrad-waves 1.0 both"):
            small.add_kernels({"cos": np.cos, "sin": np.sin}, "plugrad-tides 2.0")
        assert "cos" not in small.kernels

    def test_the_backends_own_kernel_stays(self, small: ActiveBackend) -> None:
        with pytest.raises(PluginError, match=r"the backend 'small' itself both have .*'mul'"):
            small.add_kernels({"mul": np.multiply}, "plugrad-waves 1.0")

    def test_their_names_are_checked(self, small: ActiveBackend) -> None:
        with pytest.raises(PluginError, match=r"plugrad-waves has a kernel for 'sinn'"):
            small.add_kernels({"sinn": np.sin}, "plugrad-waves")


class TestMissing:
    def test_a_primitive_names_itself(self, small: ActiveBackend) -> None:
        x = plugrad.tensor([0.0], device="small")
        with pytest.raises(OperatorNotFoundError) as caught:
            x.exp()
        error = caught.value
        assert (error.operator, error.backend, error.primitive) == (
            "plugrad::exp",
            "small",
            "plugrad::exp",
        )
        assert "Give backend 'small' a kernel named 'exp'" in str(error)
        assert "[backends.small]" in str(error)

    def test_an_operator_made_of_others_names_the_primitive(self, small: ActiveBackend) -> None:
        x = plugrad.tensor([0.0], device="small")
        with pytest.raises(OperatorNotFoundError) as caught:
            plugrad.nn.functional.mse_loss(x, x)
        error = caught.value
        assert error.operator == "plugrad::mse_loss"
        assert error.backend == "small"
        assert error.primitive not in ("", "plugrad::mse_loss")
        assert f"it is made of '{error.primitive}'" in str(error)


class TestDLPack:
    def test_host_memory_goes_to_the_cpu(self) -> None:
        array = np.arange(3.0)
        x = plugrad.from_dlpack(array)
        array[0] = 5
        assert x.device.type == "cpu"
        assert x.tolist() == [5.0, 1.0, 2.0]

    def test_copy_shares_nothing(self) -> None:
        array = np.arange(3.0)
        x = plugrad.from_dlpack(array, copy=True)
        array[0] = 5
        assert x.tolist() == [0.0, 1.0, 2.0]

    def test_another_device_gets_a_copy(self, small: ActiveBackend) -> None:
        x = plugrad.from_dlpack(np.arange(3.0), device="small")
        assert x.device.type == "small"
        assert x.tolist() == [0.0, 1.0, 2.0]

    def test_a_copy_that_is_forbidden_is_an_error(self, small: ActiveBackend) -> None:
        with pytest.raises(BufferError, match=r"backend 'small' does not share memory"):
            plugrad.from_dlpack(np.arange(3.0), device="small", copy=False)

    def test_memory_of_an_unknown_kind_names_the_active_backends(self) -> None:
        class Elsewhere:
            def __dlpack__(self, **options: Any) -> Any: ...

            def __dlpack_device__(self) -> tuple[int, int]:
                return (13, 0)

        plugrad.zeros(1, device="cpu")  # other tests may have activated more backends
        with pytest.raises(BufferError, match=r"DLPack device type 13; active: ([\w, ]*, )?cpu"):
            plugrad.from_dlpack(Elsewhere())


@pytest.mark.parametrize(("why", "says"), [("unplugged: plug it in", "unplugged"), (None, "none")])
def test_who_chooses_a_backend_without_a_device_is_told_why(why: str | None, says: str) -> None:
    class Absent(Small):
        def device_count(self) -> int:
            return 0

        def problem(self) -> str | None:
            return why

    activate_backend(Absent())
    try:
        with pytest.raises(RuntimeError, match=f"backend 'small' has no device: .*{says}"):
            plugrad.zeros(2, device="small")
        with pytest.raises(RuntimeError, match="has no device"):
            plugrad.zeros(2).to("small:1")
    finally:
        deactivate_backend("small")


def test_a_backend_has_nothing_to_report_unless_it_says_so() -> None:
    assert (Small().problem(), dict(Small().describe())) == (None, {})
