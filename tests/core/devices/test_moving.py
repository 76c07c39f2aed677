"""`to`, `cpu`, `cuda` and `copy_` between devices: copies that share nothing, and gradients."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.errors import BackendNotFoundError
from plugrad.testing import gradcheck, gradgradcheck
from tests.core.devices.places import Places, Swift

PAIRS = [
    ("cpu", "places:1"),
    ("places:1", "cpu"),
    ("places:0", "places:2"),
    ("places:1", "meta"),
    ("cpu", "near:1"),
    ("near:2", "places:0"),
    ("near:1", "beside:1"),
    ("near:1", "beside:2"),
    ("beside:0", "near:0"),
    ("beside:0", "cpu"),
    ("cpu", "beside:1"),
]
WITH_ELEMENTS = [pair for pair in PAIRS if "meta" not in pair]

pytestmark = pytest.mark.usefixtures("places", "near", "beside")


@pytest.mark.parametrize(("here", "there"), WITH_ELEMENTS)
def test_what_is_moved_shares_nothing(here: str, there: str) -> None:
    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], device=here)
    y = x.to(there)
    assert (str(y.device), y.dtype, y.tolist()) == (there, x.dtype, x.tolist())
    x.add_(10)
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    y.mul_(0)
    assert x.tolist() == [[11.0, 12.0], [13.0, 14.0]]


@pytest.mark.parametrize(("here", "there"), WITH_ELEMENTS)
def test_copy_writes_and_shares_nothing(here: str, there: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=here)
    y = plugrad.zeros(3, 2, dtype=plugrad.float64, device=there)
    assert y.copy_(x) is y
    assert y.tolist() == [[1.0, 2.0]] * 3
    z = plugrad.zeros(2, device=there).copy_(x)
    x.add_(1)
    assert z.tolist() == [1.0, 2.0]
    z.mul_(0)
    assert x.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_the_gradient_comes_back_in_dtype_and_device(here: str, there: str) -> None:
    x = plugrad.ones(2, dtype=plugrad.float64, device=here, requires_grad=True)
    y = x.to(there, plugrad.float32)
    assert (str(y.device), y.dtype) == (there, plugrad.float32)
    if there == "meta":
        return
    (y * 3).sum().backward()
    assert (x.grad.tolist(), x.grad.dtype, x.grad.device) == ([3.0, 3.0], x.dtype, x.device)


@pytest.mark.parametrize(("here", "there"), WITH_ELEMENTS)
def test_derivatives_of_a_move_and_a_copy(here: str, there: str) -> None:
    x = plugrad.tensor([0.5, 1.5], dtype=plugrad.float64, device=here, requires_grad=True)

    def there_and_back(x: Any) -> Any:
        y = x.to(there)
        z = plugrad.ones(2, dtype=plugrad.float64, device=there) * 2
        z[:1].copy_(x[1:])
        return (y * y * z).to(here)

    assert gradcheck(there_and_back, x)
    assert gradgradcheck(there_and_back, x)


class Narrow(Places):
    """Has no float64, as JAX by default, and GPUs of some makers."""

    def native_dtype(self, dtype: Any) -> Any:
        if dtype.name in ("float64", "complex128"):
            raise TypeError(f"{dtype} is not supported on {self.name!r}")
        return dtype.numpy

    def from_host(self, array: Any, index: int) -> Any:
        assert array.dtype.name != "float64", "an array of float64"
        return super().from_host(array, index)


def test_casts_are_where_both_dtypes_are() -> None:
    activate_backend(Narrow("narrow"))
    try:
        wide = plugrad.tensor([1.0, 2.0], dtype=plugrad.float64, requires_grad=True)
        y = wide.to("narrow:1", plugrad.float32)
        (y * plugrad.tensor(3.0, dtype=plugrad.float64)).sum().backward()
        assert (wide.grad.tolist(), wide.grad.dtype) == ([3.0, 3.0], plugrad.float64)
        whole = plugrad.tensor([1, 2], device="narrow")
        assert whole.to("cpu", plugrad.float64).tolist() == [1.0, 2.0]
        assert plugrad.zeros(2, dtype=plugrad.float64).copy_(whole).tolist() == [1.0, 2.0]
        assert plugrad.zeros(2, device="narrow").copy_(wide.detach()).tolist() == [1.0, 2.0]
        back = plugrad.ones(2, device="narrow", requires_grad=True)
        (back.to("cpu", plugrad.float64) * wide.detach()).sum().backward()
        assert (back.grad.tolist(), back.grad.dtype) == ([1.0, 2.0], plugrad.float32)
        target = plugrad.zeros(2, dtype=plugrad.float64)
        source = plugrad.ones(2, device="narrow", requires_grad=True)
        (target.copy_(source) * 2).sum().backward()
        assert (source.grad.tolist(), source.grad.dtype) == ([2.0, 2.0], plugrad.float32)
    finally:
        deactivate_backend("narrow")


def test_the_tensor_itself_if_it_is_there() -> None:
    x = plugrad.ones(2, device="places:1")
    assert x.to("places:1") is x
    assert x.to(plugrad.ones(1, device="places:1")) is x
    assert plugrad.ones(2).cpu().to("cpu").device.type == "cpu"
    copied = x.to("places:1", copy=True)
    copied.add_(1)
    assert (copied is x, x.tolist()) == (False, [1.0, 1.0])


def test_all_forms_of_to() -> None:
    x = plugrad.ones(2)
    other = plugrad.ones(1, dtype=plugrad.float64, device="places:2")
    for y in (
        x.to(other),
        x.to(other, non_blocking=True),
        x.to("places:2", plugrad.float64),
        x.to(plugrad.device("places", 2), plugrad.float64, True, True),
        x.to(device="places:2", dtype=plugrad.float64),
        x.to(plugrad.float64, copy=True).to("places:2", copy=False),
        x.to("places:2").type(plugrad.float64),
        x.type_as(other),
    ):
        assert (str(y.device), y.dtype, y.get_device()) == ("places:2", plugrad.float64, 2)
    assert (x.get_device(), x.is_cuda, x.is_cpu) == (-1, False, True)
    assert x.to("meta").get_device() == -1


def test_a_number_is_a_device_of_the_accelerator() -> None:
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is"):
        plugrad.ones(2).to(1)
    with plugrad.device("places"):
        assert str(plugrad.ones(2, device="cpu").to(1).device) == "places:1"
        assert str(plugrad.zeros(2, device=2).device) == "places:2"
        assert str(plugrad.device(1)) == "places:1"


def test_cuda_names_what_is_missing() -> None:
    """The backend, if that is not installed, or else what it lacks."""
    if not plugrad.cuda.is_available():
        missing = (BackendNotFoundError, plugrad.plugins.PluginError, RuntimeError)
        with pytest.raises(missing, match="cuda"):
            plugrad.ones(2).cuda()
    with pytest.raises(RuntimeError, match="Invalid device, must be cuda device, but got cpu"):
        plugrad.ones(2).cuda("cpu")


def test_a_move_within_a_backend_does_not_pass_the_host() -> None:
    swift = Swift("swift")
    activate_backend(swift)
    try:
        x = plugrad.ones(2, device="swift:1")
        swift.log.clear()
        y = x.to("swift:2", non_blocking=True)
        plugrad.zeros(2, device="swift:0").copy_(x)
        assert ("copy_to_device", True) in swift.log
        assert not {"to_host", "copy_to_host"} & {what for what, _ in swift.log}
        swift.log.clear()
        y.to("cpu", non_blocking=True)
        plugrad.ones(2).to("swift:1", non_blocking=True)
        plugrad.ones(2).to("swift:1")
        assert swift.log == [
            ("copy_to_host", True),
            ("copy_from_host", True),
            ("copy_from_host", False),
        ]
    finally:
        deactivate_backend("swift")


def test_memory_of_one_kind_does_not_pass_the_host(near: Places, beside: Places) -> None:
    x = plugrad.tensor([1.0, 2.0], device="near:1")
    near.log.clear()
    y = x.to("beside:1")
    assert ("from_dlpack", 1) in beside.log
    z = y.to("near:1")
    assert near.log == [("from_dlpack", 1)]
    assert y.tolist() == z.tolist() == [1.0, 2.0]


def test_pinned_memory() -> None:
    x = plugrad.ones(2)
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is"):
        x.pin_memory()
    with pytest.raises(RuntimeError, match="Need to provide pin_memory allocator"):
        x.pin_memory("places")
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        plugrad.ones(2, device="places").pin_memory()
    activate_backend(Swift("swift"))
    try:
        pinned = x.pin_memory("swift")
        assert (pinned.is_pinned(), x.is_pinned(), pinned.tolist()) == (True, False, [1.0, 1.0])
        assert pinned.pin_memory("swift") is pinned
        with plugrad.device("swift:1"):
            assert x.pin_memory().is_pinned()
    finally:
        deactivate_backend("swift")


def test_a_conversion_that_gives_something_else_is_named() -> None:
    class Astray(Swift):
        def copy_from_host(self, array: Any, index: int, non_blocking: bool = False) -> Any:
            return array

    activate_backend(Astray("astray"))
    try:
        with pytest.raises(TypeError, match=r"copy_from_host\(\) of backend 'astray' must return"):
            plugrad.ones(2).to("astray")
    finally:
        deactivate_backend("astray")
