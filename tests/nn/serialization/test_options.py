"""Options of load and save: devices, mapping, byte order, checksums, pickle."""

from __future__ import annotations

import io
import json
import mmap
import pickle
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import serialization


def saved(obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    plugrad.save(obj, file, format="pt", **options)
    file.seek(0)
    return file


@pytest.fixture(autouse=True)
def settings_as_before() -> Iterator[None]:
    yield
    serialization.set_crc32_options(True)
    serialization.set_default_load_endianness(None)
    serialization.clear_safe_globals()


# Devices.


@pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
@pytest.mark.parametrize(
    "map_location",
    [
        "second",
        plugrad.device("cpu"),
        {"cpu": "second"},
        {"cuda:0": "cpu"},
        lambda storage, location: storage.to(device="second"),
        lambda storage, location: None,
        lambda storage, location: storage.clone(),
    ],
)
def test_every_form_of_map_location(second_backend: str, map_location: Any, new: bool) -> None:
    base = plugrad.arange(6.0)
    file = saved([base, base[2:4], plugrad.nn.Parameter(base)], _use_new_zipfile_serialization=new)
    found = plugrad.load(file, map_location=map_location)
    expected = "second" if "second" in str(map_location) else None
    if callable(map_location):
        storage = base.untyped_storage()
        expected = getattr(map_location(storage, "cpu"), "device", storage.device).type
    assert {value.device.type for value in found} == {expected or "cpu"}
    assert [value.tolist() for value in found] == [[0, 1, 2, 3, 4, 5], [2, 3], [0, 1, 2, 3, 4, 5]]
    with plugrad.no_grad():
        found[0][3] = 30
    assert found[1].tolist() == [2, 30]
    assert found[2].tolist() == [0, 1, 2, 30, 4, 5]
    assert type(found[2]) is plugrad.nn.Parameter


def test_a_function_gets_storages_on_the_cpu_and_their_tags(second_backend: str) -> None:
    seen = []

    def place(storage: Any, location: str) -> Any:
        seen.append((type(storage), str(storage.device), location))
        return storage

    plugrad.load(saved([plugrad.ones(1), plugrad.ones(1, device="second")]), map_location=place)
    assert seen == [(plugrad.UntypedStorage, "cpu", where) for where in ("cpu", "second")]


def test_tensors_return_to_their_device(second_backend: str) -> None:
    base = plugrad.arange(4.0, device="second")
    found = plugrad.load(saved([base, base[1:], base.storage()]))
    assert [str(value.device) for value in found] == ["second"] * 3
    found[0].add_(1)
    assert found[1].tolist() == [2, 3, 4]


def test_map_location_to_meta_has_no_data() -> None:
    found = plugrad.load(saved(plugrad.ones(2, 3).t()), map_location="meta")
    assert (found.device.type, tuple(found.shape), found.stride()) == ("meta", (3, 2), (1, 3))


def test_a_device_that_is_not_there_is_named_with_the_way_out() -> None:
    with pytest.raises(RuntimeError, match=r"on a \w+ device but there is none.*map_location="):
        plugrad.load(saved(plugrad.ones(1)), map_location="cuda:7")
    with pytest.raises(RuntimeError, match="on a nowhere device but there is none"):
        plugrad.load(saved(plugrad.ones(1)), map_location={"cpu": "nowhere"})


def test_what_is_no_map_location_is_refused() -> None:
    with pytest.raises(TypeError, match="map_location must be a device, its name, a dict"):
        plugrad.load(saved(plugrad.ones(1)), map_location=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="map_location must return a storage or None, got str"):
        plugrad.load(saved(plugrad.ones(1)), map_location=lambda storage, location: "cpu")


def test_packages_tag_and_restore_storages(monkeypatch: pytest.MonkeyPatch) -> None:
    from plugrad_nn.serialization import locations

    monkeypatch.setattr(locations, "_packages", [])
    moved = []

    def restore(storage: Any, location: str) -> Any:
        if location != "vault":
            return None
        moved.append(storage.nbytes())
        return storage

    serialization.register_package(1, lambda storage: "vault", restore)
    file = saved(plugrad.ones(3))
    assert plugrad.load(file).tolist() == [1, 1, 1]
    assert moved == [12]


# Mapping.


def test_mapped_tensors_share_the_memory_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    base = plugrad.arange(6.0)
    plugrad.save([base, base[2:], plugrad.empty(0)], path, format="pt")
    before = path.read_bytes()
    found = plugrad.load(path, mmap=True)
    assert found[1].tolist() == [2, 3, 4, 5]
    assert found[0].untyped_storage().nbytes() == 24
    found[0].add_(1)
    assert found[1].tolist() == [3, 4, 5, 6]
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(mmap, "MAP_SHARED"), reason="the system has no such flags")
def test_a_shared_mapping_writes_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    plugrad.save(plugrad.zeros(3), path, format="pt")
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        plugrad.load(path, mmap=True).add_(5)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    serialization.set_crc32_options(False)
    assert plugrad.load(path).tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE or mmap\.MAP_SHARED"):
        serialization.set_default_mmap_options(0x40000)


def test_what_cannot_be_mapped_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap"):
        plugrad.load(saved(plugrad.ones(1)), mmap=True)
    path = tmp_path / "x.pt"
    plugrad.save(plugrad.ones(1), path, format="pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        plugrad.load(path, mmap=True)


# Byte order, checksums, skipping.


def in_the_other_order(order: str | None) -> io.BytesIO:
    """A file as a machine of the other byte order would write it."""
    foreign = {"little": ">", "big": "<"}[sys.byteorder]
    records = {
        "0": np.arange(3, dtype=f"{foreign}f4"),
        "1": np.array([1 + 2j, 3j], f"{foreign}c8"),
        "2": np.arange(3, dtype=f"{foreign}u2"),
        "3": np.array([True, False]),
    }
    value = [
        plugrad.arange(3.0),
        plugrad.tensor([1 + 2j, 3j]),
        plugrad.arange(3).to(plugrad.uint16),
        plugrad.tensor([True, False]),
    ]
    target = io.BytesIO()
    with zipfile.ZipFile(saved(value)) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            last = name.rpartition("/")[2]
            record: Any = source.read(name)
            if last == "byteorder":
                if order is None:
                    continue
                record = order.encode()
            if "/data/" in name:
                record = records[last].tobytes()
            archive.writestr(name, record)
    target.seek(0)
    return target


def test_files_of_the_other_byte_order_are_read() -> None:
    other = "big" if sys.byteorder == "little" else "little"
    found = plugrad.load(in_the_other_order(other))
    assert [x.tolist() for x in found] == [[0, 1, 2], [1 + 2j, 3j], [0, 1, 2], [True, False]]


@pytest.mark.skipif(sys.byteorder == "big", reason="it is the machine's own order there")
def test_files_without_a_byte_order_have_the_default_one() -> None:
    assert serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    assert plugrad.load(in_the_other_order(None))[0].tolist() == [0, 1, 2]
    serialization.set_default_load_endianness(serialization.LoadEndianness.LITTLE)
    assert plugrad.load(in_the_other_order(None))[0].tolist() != [0, 1, 2]
    plain = saved(plugrad.ones(2), _disable_byteorder_record=True)
    assert plugrad.load(plain).tolist() == [1, 1]
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        serialization.set_default_load_endianness("big")  # type: ignore[arg-type]


def test_checksums_can_be_left_out(torch: Any) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        torch.save(torch.ones(3), file)
    finally:
        torch.serialization.set_crc32_options(True)
    file.seek(0)
    assert plugrad.load(file).tolist() == [1, 1, 1]
    serialization.set_crc32_options(False)
    assert not serialization.get_crc32_options()
    assert torch.load(saved(plugrad.ones(2))).tolist() == [1, 1]


@pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
def test_data_can_be_left_out(new: bool) -> None:
    with serialization.skip_data():
        file = saved({"w": plugrad.ones(3), "n": 2}, _use_new_zipfile_serialization=new)
    found = plugrad.load(file)
    assert found["n"] == 2
    assert tuple(found["w"].shape) == (3,)
    if new:
        assert found["w"].tolist() == [0, 0, 0]
    file.seek(0)
    with serialization.skip_data():
        assert tuple(plugrad.load(file)["w"].shape) == (3,)


def test_packed_records_are_read() -> None:
    target = io.BytesIO()
    packed = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(saved(plugrad.arange(1000.0))) as source, packed as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    target.seek(0)
    assert plugrad.load(target).tolist() == list(range(1000))


# Pickle.


def test_pickle_module_is_pythons_or_none() -> None:
    file = saved(plugrad.ones(1))
    assert plugrad.load(file, None, pickle).tolist() == [1]
    file.seek(0)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_modu"):
        plugrad.load(file, pickle_module=pickle, weights_only=True)
    with pytest.raises(ValueError, match="pickle_module must be Python's pickle, got json"):
        plugrad.load(file, pickle_module=json, weights_only=False)
    with pytest.raises(ValueError, match="pickle_module must be Python's pickle, got int"):
        plugrad.save(1, io.BytesIO(), 3, format="pt")


def test_weights_only_is_explicit() -> None:
    with pytest.raises(TypeError, match="weights_only must be a bool or None, got int"):
        plugrad.load(saved(1), weights_only=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fix_imports can be given with weights_only=False only"):
        plugrad.load(saved(1), fix_imports=True)
    assert plugrad.load(saved(1), weights_only=False, fix_imports=True) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "zip"}, "format must be 'safetensors' or 'pt', got 'zip'"),
        ({"format": "pt", "metadata": {"a": "b"}}, "metadata goes with format='safetensors'"),
        ({"format": "pt", "pickle_protocol": 1}, "pickle_protocol must be from 2 to"),
        ({"format": "pt", "pickle_protocol": True}, "pickle_protocol must be from 2 to"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plugrad.save(plugrad.ones(1), io.BytesIO(), **options)


def test_what_cannot_be_pickled_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    plugrad.save(1, path, format="pt")
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        plugrad.save({"f": lambda: 1}, path, format="pt")
    assert plugrad.load(path) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.pt"]


# What is allowed.


class Config:
    def __init__(self, width: int) -> None:
        self.width = width
        self.items = [1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # it can change


def test_allowed_names_are_used_and_forgotten() -> None:
    file = saved([Config(3), plugrad.ones(1)])
    with pytest.raises(pickle.UnpicklingError, match=r"test_options\.Config"):
        plugrad.load(file)
    with serialization.safe_globals([Config]):
        assert serialization.get_safe_globals() == [Config]
        file.seek(0)
        assert plugrad.load(file)[0] == Config(3)
        assert serialization.get_unsafe_globals_in_checkpoint(saved(Config(1))) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([Config])
    serialization.clear_safe_globals()
    assert serialization.get_unsafe_globals_in_checkpoint(saved(Config(1))) == [
        f"{Config.__module__}.Config"
    ]


def test_another_name_can_stand_for_a_class() -> None:
    class Old(Config):
        pass

    Old.__module__, Old.__qualname__ = "gone", "Old"
    sys.modules["gone"] = type(sys)("gone")
    vars(sys.modules["gone"])["Old"] = Old
    try:
        file = saved(Old(2))
    finally:
        del sys.modules["gone"]
    with serialization.safe_globals([(Config, "gone.Old")]):
        assert plugrad.load(file) == Config(2)


@pytest.mark.parametrize("entry", [3, "name", (Config, 3), (3, "name"), (Config,)])
def test_what_is_no_name_cannot_be_allowed(entry: Any) -> None:
    with pytest.raises(TypeError, match=r"add_safe_globals\(\): "):
        serialization.add_safe_globals([entry])
    assert serialization.get_safe_globals() == []


def test_a_failing_block_forgets_too() -> None:
    with pytest.raises(KeyError), serialization.safe_globals([Config]):
        raise KeyError
    assert serialization.get_safe_globals() == []


# Files.


class OnlyReads:
    """A file in which one cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, count: int = -1) -> bytes:
        return self._file.read(count)


@pytest.mark.parametrize("format_", ["pt", "safetensors"])
def test_files_without_seek_are_read_and_written(format_: Any) -> None:
    class OnlyWrites:
        data = b""

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

        def flush(self) -> None:
            pass

    target: Any = OnlyWrites()
    plugrad.save([plugrad.ones(2)], target, format=format_)
    source: Any = OnlyReads(target.data)
    assert plugrad.load(source)[0].tolist() == [1, 1]


@pytest.mark.parametrize("options", [{"format": "pt"}, {}])
def test_files_are_read_from_where_they_stand(options: dict[str, Any]) -> None:
    file = io.BytesIO(b"before")
    file.seek(6)
    plugrad.save({"w": plugrad.ones(2)}, file, **options)
    file.seek(6)
    assert plugrad.load(file)["w"].tolist() == [1, 1]
