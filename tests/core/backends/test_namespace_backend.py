"""`Backend.from_array_namespace`: options, devices, dtypes, conversions, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import find_backend
from plugrad.errors import OperatorNotFoundError
from plugrad.plugins import ArrayNamespaceBackend, Backend, kernel
from tests.core.backends.conftest import activated
from tests.core.backends.strict_flags import FLAGS, strict


class Namesake:
    """NumPy under another name, and without some functions."""

    def __init__(self, name: str, without: tuple[str, ...] = ()) -> None:
        self.__name__ = name
        self._without = without

    def __getattr__(self, attribute: str) -> Any:
        if attribute in self._without:
            raise AttributeError(attribute)
        return getattr(np, attribute)


@pytest.fixture
def device() -> Iterator[str]:
    with activated(Backend.from_array_namespace(array_api_strict, "strict")) as name:
        yield name


def test_the_name_is_the_last_part_of_the_namespaces_unless_given() -> None:
    assert Backend.from_array_namespace(array_api_strict).name == "array_api_strict"
    dotted = Namesake("foo.bar_numpy")
    assert Backend.from_array_namespace(dotted).name == "bar_numpy"
    assert Backend.from_array_namespace(np, "other").name == "other"


@pytest.mark.parametrize("flags", FLAGS)
def test_kernels_are_those_that_the_namespace_has_functions_for(flags: str) -> None:
    with strict(flags) as xp:
        kernels = Backend.from_array_namespace(xp, "strict").kernels()
    assert {"add", "mm", "sum", "take", "sort"} <= kernels.keys()
    assert ("_linalg_solve" in kernels) == ("enabled_extensions" not in FLAGS[flags])
    assert ("nonzero" in kernels) == FLAGS[flags].get("data_dependent_shapes", True)
    assert ("cumprod" in kernels) == (FLAGS[flags].get("api_version") != "2023.12")
    assert "copy_" not in kernels


def test_a_namespace_of_no_standard_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'math' has no __array_namespace_info__\(\)"):
        Backend.from_array_namespace(math)


def test_a_namespace_of_an_old_standard_is_refused() -> None:
    old = SimpleNamespace(__array_namespace_info__=None, __array_api_version__="2022.12")
    with pytest.raises(TypeError, match=r"version 2022\.12 .*; 2023\.12 or later is needed"):
        Backend.from_array_namespace(old)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        Backend.from_array_namespace(np, colour="red")


def test_each_device_of_the_namespace_has_an_index(device: str) -> None:
    x = plugrad.ones(2, device="strict:1", requires_grad=True)
    assert x.array.device == array_api_strict.Device("device1")
    (x * 2 + x).sum().backward()
    assert x.grad.device == plugrad.device("strict:1")
    assert x.to("strict:2").array.device == array_api_strict.Device("device2")
    assert x.grad.cpu().tolist() == [3.0, 3.0]


def test_devices_that_lack_dtypes_of_the_default_one_are_left_out() -> None:
    backend = Backend.from_array_namespace(array_api_strict, "strict")
    assert [str(device) for device in backend.namespace.devices] == [
        "array_api_strict.Device('CPU_DEVICE')",
        "array_api_strict.Device('device1')",
        "array_api_strict.Device('device2')",
    ]
    single = Backend.from_array_namespace(
        array_api_strict, "strict", dtypes=["float32", "int32", "int64", "bool"]
    )
    assert "array_api_strict.Device('no_float64')" in map(str, single.namespace.devices)


def test_devices_can_be_chosen() -> None:
    chosen = [array_api_strict.Device("device2")]
    with activated(Backend.from_array_namespace(array_api_strict, "strict", devices=chosen)):
        x = plugrad.zeros(2, device="strict")
        assert str(x.device) == "strict"
        assert x.array.device == chosen[0]


def test_tensors_of_two_devices_do_not_mix(device: str) -> None:
    with pytest.raises(RuntimeError, match="strict:0 and strict:1"):
        plugrad.ones(2, device="strict:0") + plugrad.ones(2, device="strict:1")


@pytest.mark.parametrize("dtype", [plugrad.float16, plugrad.bfloat16])
def test_a_dtype_that_is_missing_is_named_with_those_there_are(device: str, dtype: Any) -> None:
    with pytest.raises(TypeError, match=f"{dtype} is not supported .*array_api_strict has .*int8"):
        plugrad.zeros(2, dtype=dtype, device=device)
    with pytest.raises(TypeError, match=f"{dtype} is not supported"):
        plugrad.ones(2).to(device).to(dtype)
    with pytest.raises(TypeError, match=f"{dtype} is not supported"):
        plugrad.zeros(2, dtype=dtype).to(device)


def test_dtypes_can_be_chosen() -> None:
    backend = Backend.from_array_namespace(np, "np", dtypes=["float32", "int64", "uint8", "bool"])
    assert set(backend.dtypes()) == {plugrad.float32, plugrad.int64, plugrad.uint8, plugrad.bool}


def test_what_is_copied_from_the_host_is_a_copy(device: str) -> None:
    host = np.arange(3.0)
    host.flags.writeable = False
    there = plugrad.from_numpy(host.copy()).to(device)
    back = there.cpu()
    back.add_(1)
    assert there.tolist() == [0.0, 1.0, 2.0]


def test_memory_is_exchanged_through_dlpack(device: str) -> None:
    source = np.arange(3.0)
    x = plugrad.from_dlpack(source, device="strict:0")
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert np.from_dlpack(x).tolist() == [0.0, 1.0, 2.0]
    assert "dlpack" in Backend.from_array_namespace(np, "np").capabilities()


def test_a_dtype_that_a_function_refuses_is_refused_in_pytorchs_words(device: str) -> None:
    x = plugrad.ones(2, dtype=plugrad.bool, device=device)
    with pytest.raises(NotImplementedError, match="\"floor\" not implemented for 'Bool'"):
        x.floor()


def test_what_cannot_be_done_names_operator_backend_and_primitive() -> None:
    with activated(Backend.from_array_namespace(Namesake("partial", ("cos",)))) as name:
        x = plugrad.ones(2, device=name, requires_grad=True)
        y = x.sin().sum()
        with pytest.raises(OperatorNotFoundError, match=r"plugrad::cos' .* 'Partial'") as error:
            y.backward()
    assert (error.value.backend, error.value.primitive) == ("partial", "plugrad::cos")


@pytest.mark.filterwarnings("error")
def test_division_by_zero_is_silent(device: str) -> None:
    x = plugrad.tensor([0.0, 1.0], device=device)
    assert (1 / x).tolist() == [math.inf, 1.0]
    assert x.log().tolist() == [-math.inf, 0.0]
    assert plugrad.ones(0, device=device).mean().isnan()


def test_a_singular_system_is_refused_as_on_the_cpu(device: str) -> None:
    with pytest.raises(RuntimeError, match="the input matrix is singular"):
        plugrad.linalg.solve(plugrad.zeros(2, 2, device=device), plugrad.ones(2, 1, device=device))


def test_subclasses_bring_kernels_of_their_own() -> None:
    class Louder(ArrayNamespaceBackend):
        @kernel("neg")
        def twice(self, a: Any) -> Any:
            return a * -2

    with activated(Louder(np, "louder")) as name:
        assert (-plugrad.ones(2, device=name)).tolist() == [-2.0, -2.0]
        assert plugrad.ones(2, device=name).exp().cpu().allclose(plugrad.ones(2).exp())


def test_kernels_can_be_replaced_by_name() -> None:
    backend = Backend.from_array_namespace(np, "np", kernels={"exp": lambda a: a})
    with activated(backend) as name:
        assert plugrad.ones(2, device=name).exp().tolist() == [1.0, 1.0]


def test_mutable_arrays_are_written_to() -> None:
    with activated(Backend.from_array_namespace(np, "np", mutable=True)) as name:
        x = plugrad.zeros(2, 3, device=name)
        array = x.array
        x.t()[1:].add_(2)
        x[0].mul_(5)
        assert x.array is array
        assert x.tolist() == [[0.0, 10.0, 10.0], [0.0, 2.0, 2.0]]


@pytest.fixture(params=["numpy", "strict"])
def mutable(request: pytest.FixtureRequest) -> Iterator[str]:
    """NumPy exposes strides itself, the strict namespace only through DLPack."""
    xp = {"numpy": np, "strict": array_api_strict}[request.param]
    with activated(Backend.from_array_namespace(xp, "zz_mutable", mutable=True)) as name:
        yield name


def geometry(device: str) -> list[Any]:
    x = plugrad.arange(24.0, device=device).reshape(2, 3, 4)
    found = [
        *(x.transpose(0, 2), x[:, ::2], x[1], x[1, 2, 3], x[:, None], x.flip(0), x.view(6, 4)),
        *(x[:, :1].expand(2, 5, 4), x.diagonal(1, 0, 2), x.select(2, 1), x.movedim(0, 1).clone()),
        *(x.mT.contiguous(), x.mT * 2, plugrad.empty_like(x.mT), x[0].t().double(), x[:0]),
    ]
    return [(tuple(each.shape), each.stride(), each.is_contiguous()) for each in found]


def test_mutable_arrays_tell_where_their_elements_are(mutable: str) -> None:
    assert geometry(mutable) == geometry("cpu")
    assert find_backend(mutable).backend.capabilities() >= {"mutable", "strides"}


def test_views_of_mutable_arrays_share_memory(mutable: str) -> None:
    def written(device: str) -> list[Any]:
        x = plugrad.arange(12.0, device=device).reshape(3, 4)
        flipped = x.flip(0)
        views = (x[0, 1], x.view(12)[5], x[1].unbind()[3], x.t()[2], flipped[0])
        for number, view in enumerate(views):
            view.fill_(-number)
        return [x.tolist(), flipped.tolist()]

    assert written(mutable) == written("cpu")


def test_what_numpy_calls_read_only_is_written_to() -> None:
    with activated(Backend.from_array_namespace(np, "zz_mutable", mutable=True)) as name:
        x = plugrad.zeros(2, 2, device=name)
        x.diagonal().fill_(3)
        row = plugrad.zeros(1, device=name)
        row.expand(3).fill_(5)
        assert x.tolist() == [[3.0, 0.0], [0.0, 3.0]]
        assert row.tolist() == [5.0]


def test_no_view_of_a_mutable_array_is_a_copy(mutable: str) -> None:
    x = plugrad.zeros(2, 3, device=mutable)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(6)
    assert x.t().reshape(6).shape == (6,)


def test_a_view_as_real_shares_memory() -> None:
    with activated(Backend.from_array_namespace(np, "zz_mutable", mutable=True)) as name:
        z = plugrad.zeros(2, 3, dtype=plugrad.complex64, device=name)
        plugrad.view_as_real(z.t())[1, 0, 1] = 7
        assert z[0, 1].item() == 7j


@pytest.mark.parametrize("dtype", [plugrad.int8, plugrad.uint8, plugrad.int64])
def test_integer_powers_are_those_of_the_cpu(device: str, dtype: plugrad.dtype) -> None:
    def said(device: str) -> list[str]:
        x = plugrad.tensor([-3, -1, 0, 1, 2, 5], device=device).to(dtype)
        found = []
        for call in (
            lambda: x**-1,
            lambda: x.clone().pow_(-3),
            lambda: x**2,
            lambda: x ** (x - 3),
            lambda: x**x,
            lambda: 2**x,
            lambda: (-1) ** (x - 3),
            lambda: (x > 0) ** True,
            lambda: (x > 0) ** (x > 1),
        ):
            try:
                found.append(str(call().tolist()))
            except (RuntimeError, NotImplementedError) as error:
                found.append(str(error).partition(": ")[0])
        return found

    assert said(device) == said("cpu")


def test_immutable_arrays_are_not(device: str) -> None:
    x = plugrad.zeros(2, 3, device=device)
    array = x.array
    x.t()[1:].add_(2)
    x[0].mul_(5)
    assert x.tolist() == [[0.0, 10.0, 10.0], [0.0, 2.0, 2.0]]
    assert not array_api_strict.any(array)


def test_integers_divided_by_zero_raise_as_on_the_cpu(device: str) -> None:
    x = plugrad.ones(2, dtype=plugrad.int64, device=device)
    for divide in (lambda: x // 0, lambda: x % 0):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide()


def test_numbers_are_cut_down_to_integer_dtypes(device: str) -> None:
    x = plugrad.full((2,), 1, dtype=plugrad.uint8, device=device)
    assert (x + 255).tolist() == (plugrad.full((2,), 1, dtype=plugrad.uint8) + 255).tolist()
    assert (x - 2).tolist() == [255, 255]


def test_indices_outside_are_refused_as_on_the_cpu(device: str) -> None:
    def said(device: str) -> list[str]:
        x = plugrad.arange(6.0, device=device).reshape(2, 3)
        seven = plugrad.tensor([7], device=device)
        found = []
        for call in (
            lambda: x[seven],
            lambda: x.index_select(1, seven),
            lambda: x.gather(1, seven[None]),
            lambda: x.take(seven),
        ):
            with pytest.raises((IndexError, RuntimeError)) as error:
                call()
            found.append(f"{error.type.__name__}: {error.value}")
        return found

    assert said(device) == said("cpu")


def test_a_model_trains(device: str) -> None:
    nn, optim = plugrad.nn, plugrad.optim
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    inputs = plugrad.randn(32, 2)
    targets = (inputs[:, :1] * inputs[:, 1:]).to(device)
    inputs = inputs.to(device)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("dtype", [plugrad.int8, plugrad.uint8, plugrad.int64])
def test_shifts_by_too_much_give_what_the_cpu_gives(device: str, dtype: Any) -> None:
    def shifted(device: str) -> Any:
        x = plugrad.tensor([5, 100, 3], dtype=dtype, device=device)
        by = plugrad.tensor([1, 8 * dtype.itemsize, 0], dtype=dtype, device=device)
        return (x << by).tolist(), (x >> by).tolist()

    assert shifted(device) == shifted("cpu")


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round"])
def test_complex_numbers_are_not_rounded(device: str, name: str) -> None:
    z = plugrad.ones(2, dtype=plugrad.complex64, device=device)
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'ComplexFloat'"):
        getattr(z, name)()


def test_fmod_has_the_sign_of_the_dividend(device: str) -> None:
    values = [-5.5, -3.0, -0.0, 0.0, 4.0, math.inf, -math.inf]

    def remainders(device: str) -> str:
        x = plugrad.tensor(values, device=device)
        return str([x.fmod(by).tolist() for by in (3.0, -2.0, 0.0, math.inf)])

    assert remainders(device) == remainders("cpu")


def test_the_library_s_meta_device_is_left_out_and_more_dtypes_can_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dtypes = ["bool", "int64", "float32", "float64", "float16"]
    info = SimpleNamespace(
        default_device=lambda: "cpu",
        devices=lambda: ["cpu", "meta"],
        dtypes=lambda device: {name: getattr(np, name) for name in dtypes[:4]},
        capabilities=np.__array_namespace_info__().capabilities,
    )
    monkeypatch.setattr(np, "__array_namespace_info__", lambda: info)
    backend = ArrayNamespaceBackend(np, "zz_half", dtypes=dtypes)
    assert backend.device_count() == 1
    assert backend.native_dtype(plugrad.float16) == np.float16
    with pytest.raises(TypeError, match="not nonsense"):
        ArrayNamespaceBackend(np, "zz_half", dtypes=[*dtypes, "nonsense"])
