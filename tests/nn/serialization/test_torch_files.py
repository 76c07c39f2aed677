"""Files of PyTorch's, both ways against PyTorch itself: it writes and plugrad reads, and back."""

from __future__ import annotations

import collections
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn, optim

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")

FORMATS = pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
NAMED = ["float16", "float32", "float64", "bfloat16", "complex64", "complex128", "int8", "int16"]
NAMED += ["int32", "int64", "uint8", "bool"]
UNNAMED = ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]


def written(library: Any, obj: Any, new: bool = True, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    if library is plugrad:
        options["format"] = "pt"
    library.save(obj, file, _use_new_zipfile_serialization=new, **options)
    file.seek(0)
    return file


def both_ways(torch: Any, new: bool, make: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """What each library reads of what the other has written, and that library."""
    return [
        (plugrad, plugrad.load(written(torch, make(torch), new))),
        (torch, torch.load(written(plugrad, make(plugrad), new), weights_only=True)),
    ]


@FORMATS
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
@pytest.mark.parametrize("name", NAMED)
def test_dtypes_and_shapes_survive(
    torch: Any, name: str, shape: tuple[int, ...], new: bool
) -> None:
    def make(library: Any) -> Any:
        return (
            library.arange(6).reshape(2, 3)[: shape[0] if shape else 2].to(getattr(library, name))
            if shape
            else library.tensor(1).to(getattr(library, name))
        )

    for library, found in both_ways(torch, new, make):
        assert found.dtype == getattr(library, name)
        assert found.tolist() == make(library).tolist()
        assert tuple(found.shape) == shape
        assert type(found) is library.Tensor


@pytest.mark.parametrize("name", UNNAMED)
def test_dtypes_without_a_storage_of_their_own_survive(torch: Any, name: str) -> None:
    # PyTorch itself cannot read them from files of the old format.
    def make(library: Any) -> Any:
        return library.tensor([0, 1, 2, 3]).to(getattr(library, name))

    for library, found in both_ways(torch, True, make):
        assert found.dtype == getattr(library, name)
        assert found.tolist() == [0, 1, 2, 3]


@FORMATS
def test_views_share_memory_with_their_strides_and_offsets(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        base = library.arange(12.0).view(3, 4)
        return [base, base[1:, ::2], base.t(), base[0].expand(5, 4), library.zeros(3)]

    for _, (base, part, turned, expanded, other) in both_ways(torch, new, make):
        assert (part.stride(), part.storage_offset()) == ((4, 2), 4)
        assert (turned.stride(), expanded.stride()) == ((1, 4), (0, 1))
        base.add_(100)
        assert part.tolist() == [[104, 106], [108, 110]]
        assert expanded[4].tolist() == [100, 101, 102, 103]
        assert other.tolist() == [0, 0, 0]
        assert base.untyped_storage().nbytes() == 48


@FORMATS
def test_plain_values_and_containers_survive(torch: Any, new: bool) -> None:
    value = {
        "numbers": [1, -(10**30), 2.5, float("inf"), True, None, 1 + 2j],
        "text": ("ä", "", b"bytes\xff", bytearray(b"more")),
        3: {(1, "a"): [[], {}, ()]},
        "sets": {1, 2},
        "ordered": collections.OrderedDict(z=1, a=2),
        "counter": collections.Counter("aab"),
    }
    for _, found in both_ways(torch, new, lambda library: value):
        assert found == value
        assert list(found) == list(value)
        assert type(found["ordered"]) is collections.OrderedDict
        assert type(found["counter"]) is collections.Counter


@FORMATS
def test_dtypes_devices_sizes_and_layouts_survive(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        return [library.bfloat16, library.device("cuda:1"), library.Size([2, 3])]

    for library, found in both_ways(torch, new, make):
        assert found == make(library)
        assert type(found[2]) is library.Size
    assert plugrad.load(written(torch, torch.strided, new)) == plugrad.strided


@FORMATS
def test_parameters_and_what_requires_grad_survive(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        leaf = library.ones(2, requires_grad=True)
        return [
            library.nn.Parameter(library.ones(2)),
            library.nn.Parameter(library.zeros(1), requires_grad=False),
            leaf,
            leaf * 2,
        ]

    for library, found in both_ways(torch, new, make):
        assert [type(value) for value in found[:2]] == [library.nn.Parameter] * 2
        assert [value.requires_grad for value in found] == [True, False, True, True]
        assert all(value.is_leaf for value in found)


@FORMATS
def test_attributes_of_tensors_survive(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        values = [library.ones(2), library.nn.Parameter(library.ones(1))]
        for value in values:
            value.note = {"from": "here"}
        return values

    for library, found in both_ways(torch, new, make):
        assert [value.note for value in found] == [{"from": "here"}] * 2
        assert type(found[0]) is library.Tensor


@FORMATS
def test_buffers_survive(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        return library.nn.Buffer(library.ones(2), persistent=False)

    for library, found in both_ways(torch, new, make):
        assert isinstance(found, library.nn.Buffer)
        assert (found.persistent, found.tolist()) == (False, [1, 1])


@FORMATS
def test_what_conj_has_left_to_be_done_survives(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        z = library.tensor([1 + 2j, 3j])
        return [z, z.conj(), library.view_as_real(library.ones(2, dtype=library.complex64)).neg()]

    for _, (z, conjugate, _) in both_ways(torch, new, make):
        assert conjugate.tolist() == [1 - 2j, -3j]
        assert conjugate.is_conj()
        z.mul_(2)
        assert conjugate.tolist() == [2 - 4j, -6j]

    def imaginary(library: Any) -> Any:
        return library.tensor([1 + 2j, 3j]).conj().imag

    for _, found in both_ways(torch, new, imaginary):
        assert found.tolist() == [-2, -3]
        assert found.is_neg()


@FORMATS
def test_storages_survive(torch: Any, new: bool) -> None:
    def make(library: Any) -> Any:
        x = library.arange(3.0)
        return [x, x.storage(), library.tensor([1, 2], dtype=library.uint8).untyped_storage()]

    found = plugrad.load(written(torch, make(torch), new))
    assert isinstance(found[1], plugrad.TypedStorage)
    assert found[1].tolist() == [0, 1, 2]
    found[0][0] = 7
    assert found[1][0] == 7
    assert found[2].tolist() == [1, 2]
    again = torch.load(written(plugrad, make(plugrad)), weights_only=True)
    assert again[1].tolist() == [0, 1, 2]
    assert again[2].tolist() == [1, 2]


@FORMATS
def test_the_state_of_training_goes_to_pytorch_and_back(torch: Any, new: bool) -> None:
    def build(library: Any) -> tuple[Any, Any, Any]:
        layers = library.nn
        model = layers.Sequential(layers.Linear(2, 4), layers.BatchNorm1d(4), layers.Linear(4, 1))
        optimizer = library.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)
        return model, optimizer, library.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

    def train(library: Any, parts: tuple[Any, Any, Any]) -> list[float]:
        model, optimizer, schedule = parts
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(library.arange(6.0).reshape(3, 2)).pow(2).mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(float(loss.item()))
        return losses

    theirs = build(torch)
    train(torch, theirs)
    file = written(torch, [part.state_dict() for part in theirs], new)
    ours, back = build(plugrad), build(torch)
    states = plugrad.load(file)
    assert type(states[0]) is collections.OrderedDict
    for part, state in zip(ours, states, strict=True):
        part.load_state_dict(state)
    file = written(plugrad, [part.state_dict() for part in ours], new)
    for part, state in zip(back, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    assert back[0].state_dict()._metadata == theirs[0].state_dict()._metadata
    expected = train(torch, theirs)
    np.testing.assert_allclose(train(torch, back), expected, rtol=1e-6)
    np.testing.assert_allclose(train(plugrad, ours), expected, rtol=1e-4)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(torch: Any, protocol: int) -> None:
    value = {"w": torch.ones(2), "b": b"\0" * 300, "s": "x" * 300, "n": 2**70}
    for found in (
        plugrad.load(written(torch, value, pickle_protocol=protocol)),
        plugrad.load(written(plugrad, {**value, "w": plugrad.ones(2)}, pickle_protocol=protocol)),
    ):
        assert found["w"].tolist() == [1, 1]
        assert {key: found[key] for key in "bsn"} == {key: value[key] for key in "bsn"}


def test_the_file_is_one_that_pytorch_and_zip_know(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.v1.pt"
    plugrad.save({"w": plugrad.arange(3.0), "e": plugrad.empty(0)}, path, format="pt")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("model.v1/byteorder") in (b"little", b"big")
        assert archive.read("model.v1/version") == b"3\n"
        entry = archive.getinfo("model.v1/data/0")
        header = path.read_bytes()[entry.header_offset :][:30]
    length = sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    assert (entry.header_offset + 30 + length) % 64 == 0
    assert torch.load(path, mmap=True, weights_only=True)["w"].tolist() == [0, 1, 2]


def test_modules_are_pickled_whole_between_programs_of_plugrad() -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 2))
    model[0].twin = model[0].weight
    file = written(plugrad, {"model": model})
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        plugrad.load(file)
    file.seek(0)
    again = plugrad.load(file, weights_only=False)["model"]
    x = plugrad.rand(4, 2)
    assert again(x)[0].tolist() == model(x)[0].tolist()
    assert again[0].twin is again[0].weight
    assert isinstance(again[0].weight, nn.Parameter)
    optim.SGD(again.parameters(), lr=0.1).step()


def test_modules_of_pytorch_become_those_of_plugrad(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.LayerNorm(3))
    found = plugrad.load(written(torch, model), weights_only=False)
    assert type(found[0]) is nn.Linear
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    expected = model(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(
        found(plugrad.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6
    )


class Marked(plugrad.Tensor):
    """A class of tensors that a user wrote."""


class MarkedParameter(nn.Parameter):
    """A class of parameters that a user wrote."""


def test_subclasses_of_tensors_have_to_be_allowed() -> None:
    marked = plugrad.ones(2).as_subclass(Marked)
    marked.note = "here"
    file = written(plugrad, marked)
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL .*\.Marked was"):
        plugrad.load(file)
    file.seek(0)
    with plugrad.serialization.safe_globals([Marked]):
        found = plugrad.load(file)
    assert type(found) is Marked
    assert (found.tolist(), found.note) == ([1, 1], "here")


def test_subclasses_of_parameters_become_parameters_as_in_pytorch(torch: Any) -> None:
    parameter = MarkedParameter(plugrad.ones(2))
    assert type(plugrad.load(written(plugrad, parameter))) is nn.Parameter

    class Theirs(torch.nn.Parameter):  # type: ignore[misc]  # torch is untyped here
        pass

    assert type(torch.load(written(torch, Theirs(torch.ones(2))))) is torch.nn.Parameter


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda torch: torch.eye(2).to_sparse(), "sparse_coo|a sparse tensor"),
        (
            lambda torch: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            "dtype QInt8Storage|quantized",
        ),
        (lambda torch: torch.complex32, "the dtype complex32"),
        (lambda torch: torch.float8_e5m2fnuz, "the dtype float8_e5m2fnuz"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_plugrad_has_not_are_named(torch: Any, make: Any, what: str) -> None:
    with pytest.raises(NotImplementedError, match=f"load: the file holds .*({what})"):
        plugrad.load(written(torch, make(torch)))


def test_tensors_without_data_survive(torch: Any) -> None:
    def make(library: Any) -> Any:
        return library.empty(2, 3, device="meta").t()

    for library, found in both_ways(torch, True, make):
        assert found.device == library.device("meta")
        assert (tuple(found.shape), found.stride()) == ((3, 2), (1, 3))


def test_one_memory_as_two_dtypes_is_refused_as_in_pytorch(torch: Any) -> None:
    for library in (torch, plugrad):
        x = library.ones(2)
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            written(library, [x, x.view(library.int32)])


def test_arrays_of_others_are_saved_as_they_are(torch: Any) -> None:
    grid = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    raw = np.frombuffer(bytearray(b"x" + np.arange(3.0).tobytes()), np.uint8)[1:].view(np.float64)
    values = [plugrad.from_numpy(array) for array in (grid, grid[::2, 1], np.arange(9)[::4], raw)]
    for found in (torch.load(written(plugrad, values)), plugrad.load(written(plugrad, values))):
        assert [value.tolist() for value in found] == [value.tolist() for value in values]


def test_several_objects_of_the_old_format_follow_each_other(torch: Any) -> None:
    file = io.BytesIO()
    for number in range(3):
        torch.save(torch.full((2,), number), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [plugrad.load(file).tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]


def test_arrays_of_device_tensors_are_read(torch: Any) -> None:
    class OnDevice:
        def __reduce__(self) -> Any:
            tensor = (torch.arange(3), torch.int64, "xla:0", False)
            return torch._utils._rebuild_device_tensor_from_cpu_tensor, tensor

    file = written(torch, OnDevice())
    assert plugrad.load(file, map_location="cpu").tolist() == [0, 1, 2]
