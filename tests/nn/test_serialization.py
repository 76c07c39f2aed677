"""save and load: what survives, what is refused, and that other programs can read the files."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import plugrad
from plugrad import nn, optim
from plugrad_nn import serialization

DTYPES = [
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
]


def round_trip(value: Any) -> Any:
    file = io.BytesIO()
    plugrad.save(value, file)
    file.seek(0)
    return plugrad.load(file)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_of_every_dtype_survive(name: str, shape: tuple[int, ...]) -> None:
    tensor = plugrad.ones(shape, dtype=getattr(plugrad, name))
    loaded = round_trip(tensor)
    assert loaded.dtype == tensor.dtype
    assert loaded.tolist() == tensor.tolist()
    assert tuple(loaded.shape) == shape


def test_complex_values_survive() -> None:
    tensor = plugrad.tensor([1 + 2j, -3.5j], dtype=plugrad.complex128)
    assert round_trip({"z": tensor})["z"].tolist() == [1 + 2j, -3.5j]


def test_transposed_tensors_survive() -> None:
    tensor = plugrad.arange(6).reshape(2, 3).t()
    assert round_trip(tensor).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_nesting_and_plain_values_survive() -> None:
    value = {
        "epoch": 3,
        "best": math.inf,
        "name": "run",
        "flags": [True, None, -1.5],
        1: {"shape": (2, (3,))},
        "empty": {},
    }
    loaded = round_trip(value)
    assert loaded == value
    assert list(loaded) == list(value)
    assert isinstance(loaded[1]["shape"], tuple)


def test_requires_grad_survives() -> None:
    loaded = round_trip([plugrad.ones(1, requires_grad=True), plugrad.ones(1)])
    assert [tensor.requires_grad for tensor in loaded] == [True, False]


def test_loaded_tensors_can_be_written() -> None:
    loaded = round_trip(plugrad.zeros(3))
    loaded.add_(1)
    assert loaded.tolist() == [1.0, 1.0, 1.0]


def test_model_and_optimizer_resume_from_a_checkpoint(tmp_path: Path) -> None:
    def build() -> tuple[nn.Module, optim.Optimizer]:
        model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        return model, optim.Adam(model.parameters(), lr=0.1, amsgrad=True)

    def train(model: nn.Module, optimizer: optim.Optimizer) -> float:
        inputs = plugrad.arange(6.0).reshape(3, 2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(inputs).pow(2).mean()
            loss.backward()
            optimizer.step()
        return float(loss.item())

    model, optimizer = build()
    train(model, optimizer)
    path = tmp_path / "checkpoint.safetensors"
    plugrad.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    expected = train(model, optimizer)

    resumed, resumed_optimizer = build()
    checkpoint = plugrad.load(path)
    resumed.load_state_dict(checkpoint["model"])
    resumed_optimizer.load_state_dict(checkpoint["optimizer"])
    assert train(resumed, resumed_optimizer) == expected


def test_other_programs_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    plugrad.save(nn.Linear(2, 3).state_dict(), path, metadata={"format": "pt"})
    arrays = safetensors.numpy.load_file(path)
    assert sorted(arrays) == ["bias", "weight"]
    assert arrays["weight"].shape == (3, 2)


def test_files_of_other_programs_are_read() -> None:
    data = safetensors.numpy.save({"b": np.arange(3), "a": np.ones((2, 2), np.float16)})
    loaded = plugrad.load(io.BytesIO(data))
    assert loaded["b"].tolist() == [0, 1, 2]
    assert loaded["a"].dtype == plugrad.float16


def test_metadata_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    plugrad.save({"w": plugrad.ones(1)}, path, metadata={"accuracy": "0.98"})
    assert serialization.read_metadata(path) == {"accuracy": "0.98"}


def test_map_location_names_the_device(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    plugrad.save(plugrad.ones(1), path)
    assert plugrad.load(path, map_location="cpu").device == plugrad.device("cpu")


def test_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    plugrad.save({"w": plugrad.ones(1)}, path)

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        plugrad.save({"w": plugrad.zeros(1)}, path)
    assert plugrad.load(path)["w"].tolist() == [1.0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.safetensors"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"model": {"fn": len}}, "got builtin_function_or_method at model.fn"),
        ({(1, 2): 3}, "dict keys must be str or int, got tuple at the top"),
        (object(), "got object at the top"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        plugrad.save(value, io.BytesIO())


def test_pickle_is_refused() -> None:
    with pytest.raises(ValueError, match="weights_only must be True"):
        plugrad.load(io.BytesIO(b""), weights_only=False)


def file_of(entry: str, size: int) -> bytes:
    """A file with one entry "a", described by `entry`, and `size` bytes of data."""
    header = ('{"a":' + entry + "}").encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * size


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x80\x02pickle!!!", id="pickle"),
        pytest.param((3).to_bytes(8, "little") + b"{{{", id="no JSON"),
        pytest.param((2).to_bytes(8, "little") + b"[]", id="no object"),
        pytest.param(safetensors.numpy.save({"a": np.ones(10)})[:-1], id="cut off"),
        pytest.param(
            file_of('{"dtype":"F32","shape":[2],"data_offsets":[0,4]}', 4), id="too short"
        ),
        pytest.param(file_of('{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}', 4), id="dtype"),
        pytest.param(file_of('{"dtype":"F32","data_offsets":[0,4]}', 4), id="no shape"),
    ],
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="other is not a safetensors file: "):
        plugrad.load(path)
    with pytest.raises(ValueError, match="the file is not a safetensors file: "):
        plugrad.load(io.BytesIO(data))


def test_a_dtype_that_plugrad_has_not_is_named_with_its_entry() -> None:
    data = safetensors.numpy.save({"a": np.ones(1, np.uint16)})
    with pytest.raises(TypeError, match=r"load: entry 'a': can't convert .* numpy.uint16"):
        plugrad.load(io.BytesIO(data))


def test_a_missing_file_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plugrad.load(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        plugrad.save(plugrad.zeros(1), tmp_path / "missing" / "x")


def test_bfloat16_is_stored_as_such(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    plugrad.save({"w": plugrad.tensor([1.5, -2.0], dtype=plugrad.bfloat16)}, path)
    ((name, entry),) = safetensors.deserialize(path.read_bytes())
    assert (name, entry["dtype"], entry["shape"]) == ("w", "BF16", [2])
    assert plugrad.load(path)["w"].tolist() == [1.5, -2.0]


def test_writing_to_a_loaded_tensor_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    plugrad.save(plugrad.zeros(2), path)
    plugrad.load(path).add_(1)
    assert plugrad.load(path).tolist() == [0.0, 0.0]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
def test_the_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    plugrad.save(plugrad.zeros(2), tmp_path / "x")
    (tmp_path / "other").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"epoch": 3}, TypeError, "metadata must be str to str, got str to int at 'epoch'"),
        ({"plugrad": "x"}, ValueError, "the metadata key 'plugrad' is taken"),
    ],
)
def test_wrong_metadata_is_refused(metadata: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plugrad.save(plugrad.zeros(1), io.BytesIO(), metadata=metadata)


def containing_itself() -> list[Any]:
    inner: list[Any] = [1]
    inner.append({"a": inner})
    return inner


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [(containing_itself(), "at 1.a contains itself"), (nested(10_000), "nested too deeply")],
    ids=["cycle", "deep"],
)
def test_what_has_no_end_cannot_be_saved(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plugrad.save(value, io.BytesIO())


DAMAGED = [
    *("1", "null", "[]", "{}", "{", '{"tensor": "missing"}', '{"tensor": ["a"]}', '{"dict": 1}'),
    *('{"dict": [1]}', '{"dict": [["a"]]}', '{"dict": [[[1], {"value": 1}]]}', '{"list": {}}'),
    *('{"tuple": null}', '{"list": [3]}', '{"tensor": "a", "complex128": true}'),
    *('{"tensor": "a", "device": 3}', '{"tensor": "i", "requires_grad": true}', "[" * 100_000),
]


@pytest.mark.parametrize("structure", DAMAGED, ids=lambda text: text[:30])
def test_a_damaged_structure_is_refused(structure: str) -> None:
    arrays = {"a": np.ones(3, np.float32), "i": np.ones(3, np.int64)}
    data = safetensors.numpy.save(arrays, metadata={"plugrad": structure})
    with pytest.raises(ValueError, match="load: the structure in the file's metadata is"):
        plugrad.load(io.BytesIO(data))
