"""safetensors files: what survives, what is refused, and that other programs can read them."""

from __future__ import annotations

import io
import json
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
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
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


def file_of(entry: str, size: int) -> bytes:
    """A file with one entry "a", described by `entry`, and `size` bytes of data."""
    header = ('{"a":' + entry + "}").encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * size


@pytest.mark.parametrize(
    "data",
    [
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
    header = json.dumps({"a": {"dtype": "F8_E8M0", "shape": [1], "data_offsets": [0, 1]}}).encode()
    data = len(header).to_bytes(8, "little") + header + b"\0"
    with pytest.raises(TypeError, match=r"load: entry 'a' has a dtype .* that NumPy does not"):
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


def test_nesting_up_to_a_hundred_levels_survives() -> None:
    value: Any = plugrad.ones(1)
    for _ in range(100):
        value = [value]
    assert str(round_trip(value)) == str(value)
    with pytest.raises(ValueError, match=r"save: nested more than 100 levels deep at 0\.0\..*\.0$"):
        plugrad.save([value], io.BytesIO())


def containing_itself() -> list[Any]:
    """A list, a dict and a list in a tuple that each contain themselves."""
    in_list: list[Any] = [1]
    in_list.append(in_list)
    in_dict: dict[str, Any] = {}
    in_dict["me"] = {"again": in_dict}
    in_tuple: list[Any] = []
    in_tuple.append((in_tuple,))
    return [in_list, in_dict, in_tuple]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (0, "the list at x.1 contains itself"),
        (1, "the dict at x.me.again contains itself"),
        (2, "the list at x.0.0 contains itself"),
    ],
)
def test_a_cycle_is_refused_with_its_place(index: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plugrad.save({"x": containing_itself()[index]}, io.BytesIO())


def test_an_object_in_two_places_is_no_cycle() -> None:
    shared = [1]
    assert round_trip({"a": shared, "b": [shared, shared]}) == {"a": [1], "b": [[1], [1]]}


def test_names_that_clash_or_are_no_utf_8_are_told_apart() -> None:
    value = {"a.b": 1.0, "a": {"b": 2.0}, "\ud800": 3.0, "__metadata__": 4.0, "": 5.0}
    tensors = {key: {k: plugrad.tensor(v) for k, v in item.items()} if isinstance(item, dict) else
               plugrad.tensor(item) for key, item in value.items()}  # fmt: skip
    loaded = round_trip(tensors)
    assert str(loaded) == str(tensors)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (nn.Linear(1, 1), TypeError, r"got Linear at the top; save its state_dict\(\)"),
        ({"n": 10**5000}, ValueError, "the int at n is too long"),
        ({"a": plugrad.ones(1, device="meta")}, TypeError, "the tensor at a cannot be stored"),
    ],
)
def test_what_the_format_has_no_room_for_is_refused(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plugrad.save(value, io.BytesIO())


@pytest.mark.parametrize("f", [None, 3, b"name", object()])
def test_what_is_neither_path_nor_file_is_refused(f: Any) -> None:
    with pytest.raises(TypeError, match="save: f must be a path or a binary file, got "):
        plugrad.save(plugrad.zeros(1), f)
    with pytest.raises(TypeError, match="load: f must be a path or a binary file, got "):
        plugrad.load(f)


def test_files_of_text_are_refused() -> None:
    with pytest.raises(TypeError, match="save: f must be a binary file, but"):
        plugrad.save(plugrad.zeros(1), io.StringIO())  # type: ignore[arg-type]  # it is the error
    with pytest.raises(TypeError, match="load: f must be a binary file, but"):
        plugrad.load(io.StringIO("text"))  # type: ignore[arg-type]  # it is the error


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name, error in [
        ("missing/x", FileNotFoundError),
        ("folder", IsADirectoryError),
        ("file/x", NotADirectoryError),
    ]:
        with pytest.raises(error) as raised:
            plugrad.save(plugrad.zeros(1), tmp_path / name)
        assert raised.value.filename == str(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        plugrad.load(tmp_path / "folder")
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="is not the name of a file"):
            plugrad.save(plugrad.zeros(1), name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither")
def test_links_and_devices_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    plugrad.save(plugrad.ones(1), tmp_path / "link")
    assert plugrad.load(tmp_path / "file").tolist() == [1.0]
    assert (tmp_path / "link").is_symlink()
    plugrad.save(plugrad.ones(1), os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ("{", "is no valid JSON"),
        ("[" * 100000, "is no valid JSON"),
        ('{"list": [' * 200 + '{"value": 1}' + "]}" * 200, "nested more than 100 levels deep"),
        ("3", "at the top: expected an object, got 3"),
        ("{}", "at the top: expected tensor, dict, list, tuple or value"),
        ('{"tensor": "b"}', "there is no tensor 'b' in the file"),
        ('{"tensor": ["a"]}', r"there is no tensor \['a'\] in the file"),
        ('{"tensor": "a", "device": 3}', "expected the name of a device, got 3"),
        ('{"tensor": "a", "complex128": true}', "expected pairs of float64 for complex128"),
        ('{"tensor": "i", "requires_grad": true}', "only Tensors of floating point"),
        ('{"dict": 1}', "expected an array of the items of a dict, got 1"),
        ('{"dict": [["a"]]}', r"expected a pair of key and value, got \['a'\]"),
        ('{"dict": [[[1], {"value": 1}]]}', r"dict keys must be str or int, got \[1\]"),
        ('{"dict": [["k", {"list": [3]}]]}', r"at k\.0: expected an object, got 3"),
        ('{"tuple": null}', "expected an array of the items of a tuple, got None"),
        ('{"value": [1]}', r"expected a number, str or None, got \[1\]"),
    ],
)
def test_hostile_structures_are_refused(structure: str, message: str) -> None:
    data = safetensors.numpy.save(
        {"a": np.ones(1, np.float32), "i": np.ones(1, np.int64)}, metadata={"plugrad": structure}
    )
    with pytest.raises(ValueError, match=f"load: the metadata 'plugrad' .*{message}"):
        plugrad.load(io.BytesIO(data))


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [0, 1 << 60, 8], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [1 << 62, (1 << 62) + 4]},
    ],
)
def test_hostile_entries_are_refused(entry: dict[str, Any]) -> None:
    data = file_of(
        json.dumps(entry), entry["data_offsets"][1] if max(entry["data_offsets"]) < 9 else 4
    )
    with pytest.raises((TypeError, ValueError), match=r"load: (entry 'a'|the file is not)"):
        plugrad.load(io.BytesIO(data))


def test_map_location_returns_a_tensor() -> None:
    file = io.BytesIO()
    plugrad.save(plugrad.zeros(1), file)
    file.seek(0)
    with pytest.raises(TypeError, match="map_location must return a Tensor or None, got str"):
        plugrad.load(file, map_location=lambda tensor, device: "cpu")
