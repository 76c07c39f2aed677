"""Files that somebody wrote to do harm, or that were damaged: clear errors, nothing executed, no
memory beyond what the file is long."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import plugrad

ran: list[str] = []


def run_me(word: str) -> str:
    """What a hostile file would run."""
    ran.append(word)
    return word


class Runs:
    """Pickled, it requests a call of `run_me`."""

    def __reduce__(self) -> Any:
        return run_me, ("gotcha",)


class RunsShell:
    """Pickled, it requests a command."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


def saved(obj: Any, new: bool = True) -> bytes:
    file = io.BytesIO()
    plugrad.save(obj, file, format="pt", _use_new_zipfile_serialization=new)
    return file.getvalue()


def with_record(data: bytes, name: str, record: bytes, **options: Any) -> bytes:
    """A zip file with one record replaced or added."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as archive:
        for entry in source.infolist():
            if entry.filename != f"archive/{name}":
                archive.writestr(entry.filename, source.read(entry))
        archive.writestr(f"archive/{name}", record, **options)
    return target.getvalue()


def with_pickle(text: bytes) -> bytes:
    return with_record(saved([plugrad.ones(2)]), "data.pkl", text)


@pytest.fixture(autouse=True)
def nothing_runs() -> Any:
    ran.clear()
    yield
    assert ran == []


@pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
def test_nothing_of_a_file_is_executed(new: bool) -> None:
    with pytest.raises(pickle.UnpicklingError) as raised:
        plugrad.load(io.BytesIO(saved({"w": plugrad.ones(2), "x": Runs()}, new)))
    message = str(raised.value)
    name = f"{run_me.__module__}.run_me"
    assert message.startswith("Weights only load failed")
    assert f"Unsupported global: GLOBAL {name} was not an allowed global by default." in message
    assert f"`plugrad.serialization.add_safe_globals([{name}])`" in message
    assert "weights_only=False" in message


def test_what_runs_programs_cannot_be_allowed() -> None:
    with (
        plugrad.serialization.safe_globals([os.system]),
        pytest.raises(pickle.UnpicklingError, match=r"GLOBAL \w+\.system whose module \w+ is bloc"),
    ):
        plugrad.load(io.BytesIO(saved(RunsShell())))


def test_names_are_listed_without_running_them() -> None:
    data = saved([Runs(), plugrad.nn.Linear(1, 1), plugrad.ones(1)])
    names = plugrad.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert f"{run_me.__module__}.run_me" in names
    assert any(name.endswith("linear.Linear") for name in names)
    assert not any(name.startswith(("torch.", "collections.")) for name in names)


# Pickles; Python itself would execute most of them or fail on them.
REDUCE_GLOBAL = b"\x80\x02cbuiltins\neval\nX\x04\x00\x00\x001+1q\x85R."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(REDUCE_GLOBAL, "GLOBAL eval was not an allowed", id="eval"),
        pytest.param(b"\x80\x02c__builtin__\nexec\n.", "GLOBAL exec was not", id="old builtins"),
        pytest.param(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "GLOBAL eval was not", id="4"),
        pytest.param(b"\x80\x02ctorch\nFloatStorage\nK\x02\x85R.", "cannot call", id="storage"),
        pytest.param(b"\x80\x02K\x01)R.", "cannot call int", id="calls a number"),
        pytest.param(b"\x80\x02ctorch\nfloat32\n)R.", "cannot call", id="calls a dtype"),
        pytest.param(b"\x80\x02ctorch\nTensor\n)\x81.", "cannot make a Tensor", id="new tensor"),
        pytest.param(b"\x80\x02K\x01}b.", "cannot set attributes of a int", id="state of a number"),
        pytest.param(b"\x80\x02}K\x01a.", "can only append to lists, got dict", id="append"),
        pytest.param(b"\x80\x02]K\x01K\x01s.", "can only set items of dicts", id="set item"),
        pytest.param(b"\x80\x02}]K\x01s.", "unhashable type: 'list'", id="list as key"),
        pytest.param(b"\x80\x02.", "pop from empty list", id="nothing"),
        pytest.param(b"\x80\x02h\x05.", "damaged: KeyError", id="no memo"),
        pytest.param(b"\x80\x02t.", "damaged: IndexError", id="no mark"),
        pytest.param(b"\x80\x02\x85.", "the stack is empty", id="no item"),
        pytest.param(b"\x80\x02X\xff\xff\xff\xffa.", "it is cut off: 4294967295", id="long text"),
        pytest.param(b"\x80\x04\x8d" + b"\xff" * 8 + b".", "it is cut off", id="longer text"),
        pytest.param(b"\x80\x02X\x01\x00\x00\x00\xff.", "UnicodeDecodeError", id="no text"),
        pytest.param(b"\x80\x02" + b"\xff.", "Unsupported operand 255", id="no instruction"),
        pytest.param(b"\x80\x63K\x01.", "unsupported pickle protocol: 99", id="no protocol"),
        pytest.param(b"\x80\x02K\x01Q.", "asks for a storage in a way", id="no identifier"),
        pytest.param(b"\x80\x02U\x07storage\x85Q.", "asks for a storage", id="short identifier"),
        pytest.param(
            b"\x80\x02cbuiltins\nbytearray\n\x8a\x05\xff\xff\xff\xff\x7f\x85R.",
            "expected text",
            id="bytearray of a size",
        ),
        pytest.param(
            b"\x80\x02ccollections\nCounter\nX\x01\x00\x00\x00a\x85R.",
            "made of a dict",
            id="counter of text",
        ),
        pytest.param(
            b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.",
            "an encoding of text",
            id="codec",
        ),
        pytest.param(b"\x80\x02ctorch\nSize\nJ\xff\xff\xff\xff\x85\x85R.", "lengths", id="size"),
        pytest.param(b"\x80\x02ctorch\ndevice\n]\x85R.", "a device is made of", id="device"),
        pytest.param(b"\x80\x02" + b"(" * 100_000 + b".", "pop from empty", id="many marks"),
    ],
)
def test_hostile_pickles_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=message):
        plugrad.load(io.BytesIO(with_pickle(text)))


def test_keys_that_take_forever_to_hash_are_refused() -> None:
    # Each tuple holds the one before twice: 2**60 elements to hash.
    twice = b"\x80\x02}K\x01" + b"2\x86" * 60 + b"K\x01s."
    with pytest.raises(pickle.UnpicklingError, match=r"a key (of more|that is nested)"):
        plugrad.load(io.BytesIO(with_pickle(twice)))
    deep = b"\x80\x02}K\x01" + b"\x85" * 200_000 + b"K\x01s."
    with pytest.raises(pickle.UnpicklingError, match="a key that is nested"):
        plugrad.load(io.BytesIO(with_pickle(deep)))


def test_deep_nesting_is_no_crash() -> None:
    found = plugrad.load(
        io.BytesIO(with_pickle(b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."))
    )
    depth = 1
    while found:
        (found,) = found
        depth += 1
    assert depth == 50_000


def test_copying_the_same_again_and_again_is_refused() -> None:
    items = b"".join(b"J" + struct.pack("<i", number) for number in range(100_000))
    sets = b"cbuiltins\nset\nq\x01h\x00\x85R" + b"h\x01h\x00\x85R" * 1000
    text = b"\x80\x02](" + items + b"eq\x000(" + sets + b"t."
    tracemalloc.start()
    try:
        with pytest.raises(pickle.UnpicklingError, match="copies the same data again and again"):
            plugrad.load(io.BytesIO(with_pickle(text)))
        assert tracemalloc.get_traced_memory()[1] < 500_000_000
    finally:
        tracemalloc.stop()


def tensor_pickle(
    size: Any, stride: Any, offset: Any = 0, count: int = 2, grad: Any = False, key: Any = "0"
) -> bytes:
    """A tensor on a storage with the given layout, as a file would describe it."""

    class Identifier:
        """A placeholder for the storage."""

    class Call:
        def __reduce__(self) -> Any:
            return plugrad.nn.Linear, (Identifier(), offset, size, stride, grad, {})

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, Identifier):
                return ("storage", Identifier, key, "cpu", count)
            return None

        def save_global(self, obj: Any, name: Any = None) -> None:
            storage = b"ctorch\nFloatStorage\n"
            text = storage if obj is Identifier else b"ctorch._utils\n_rebuild_tensor_v2\n"
            self.write(text)  # type: ignore[attr-defined]  # typeshed lacks it

    file = io.BytesIO()
    Pickler(file, 2).dump(Call())
    return file.getvalue()


def test_the_pickle_of_these_tests_is_one_that_works() -> None:
    data = with_pickle(tensor_pickle((2,), (1,)))
    assert plugrad.load(io.BytesIO(data)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (3,), "stride": (1,)}, "out of bounds for storage of size 8"),
        ({"size": (2,), "stride": (2,)}, "out of bounds"),
        ({"size": (2,), "stride": (1,), "offset": 1}, "out of bounds"),
        ({"size": (1,), "stride": (1,), "offset": 2**61}, "out of bounds"),
        ({"size": (2,), "stride": (2**61,)}, "out of bounds"),
        ({"size": (2**61, 2), "stride": (0, 0)}, "too many elements"),
        ({"size": (-1,), "stride": (1,)}, "expected sizes of at least 0"),
        ({"size": (2,), "stride": (-1,)}, "expected strides of at least 0"),
        ({"size": (2,), "stride": (1,), "offset": -1}, "expected an offset of at least 0"),
        ({"size": (2,), "stride": ()}, "do not go together"),
        ({"size": [2], "stride": (1,)}, "expected sizes"),
        ({"size": (2.0,), "stride": (1,)}, "expected sizes"),
        ({"size": (1,) * 65, "stride": (1,) * 65}, "do not go together"),
        ({"size": (2,), "stride": (1,), "grad": 1}, "expected a bool for requires_grad"),
        ({"size": (2,), "stride": (1,), "count": 3}, "has 8 bytes in the file, and should have 12"),
        ({"size": (2,), "stride": (1,), "count": 2**60}, "has 8 bytes in the file"),
        ({"size": (2,), "stride": (1,), "count": -2}, "must be a number of elements"),
        ({"size": (2,), "stride": (1,), "key": None}, "must be text"),
    ],
)
def test_tensors_outside_of_their_storage_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(pickle.UnpicklingError, match=message):
        plugrad.load(io.BytesIO(with_pickle(tensor_pickle(**options))))


def test_a_storage_that_is_not_there_is_named() -> None:
    data = with_pickle(tensor_pickle((2,), (1,), key="../secret"))
    with pytest.raises(RuntimeError, match=r"there is no record 'data/\.\./secret'"):
        plugrad.load(io.BytesIO(data))


def test_attributes_do_not_hide_those_of_tensors() -> None:
    x = plugrad.ones(1)
    vars(x)["backward"] = 3
    with pytest.raises(pickle.UnpicklingError, match=r"must not hide those of tensors.*backward"):
        plugrad.load(io.BytesIO(saved(x)))


# Zip files.


def flipped(data: bytes, position: int, value: int = 0xFF) -> bytes:
    changed = bytearray(data)
    changed[position] ^= value
    return bytes(changed)


def test_a_changed_byte_of_a_tensor_is_noticed() -> None:
    data = saved({"w": plugrad.full((100,), 7.0)})
    position = data.index(np.full(100, 7.0, np.float32).tobytes())
    with pytest.raises(RuntimeError, match=r"record 'data/0' does not have the checksum"):
        plugrad.load(io.BytesIO(flipped(data, position)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-30], "the directory at its end"),
        (lambda data: data[: len(data) // 2], "the directory at its end"),
        (lambda data: b"PK\x03\x04" + b"\0" * 100, "the directory at its end"),
        (lambda data: with_record(data, "byteorder", b"middle"), "unknown byte order, b'middle'"),
        (lambda data: with_record(data, "constants.pkl", b""), "TorchScript archive"),
        (lambda data: with_record(data, "data/0", b"\1"), "has 1 bytes in the file"),
        (
            lambda data: with_record(data, "x", b"\0", compress_type=zipfile.ZIP_BZIP2),
            "packed in a way that PyTorch does not use",
        ),
        (
            lambda data: with_record(
                data, "x", b"\0" * 50_000_000, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9
            ),
            "more than is plausible",
        ),
    ],
)
def test_damaged_zip_files_are_refused(damage: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match=message):
        plugrad.load(io.BytesIO(damage(saved([plugrad.ones(2)]))))


def test_zip_files_of_others_are_refused() -> None:
    file = io.BytesIO()
    np.savez(file, a=np.ones(2))
    with pytest.raises(RuntimeError, match="none that PyTorch or plugrad has written"):
        plugrad.load(io.BytesIO(file.getvalue()))


def test_records_that_overlap_are_refused() -> None:
    # Twenty entries of the directory that all lead to the same megabyte.
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N.")
        archive.writestr("archive/data/0", b"\0" * 1_000_000)
        first = archive.getinfo("archive/data/0")
        for number in range(1, 20):
            entry = zipfile.ZipInfo(f"archive/data/{number}")
            entry.header_offset, entry.CRC = first.header_offset, first.CRC
            entry.compress_size = entry.file_size = first.file_size
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
    with pytest.raises(RuntimeError, match="its records overlap"):
        plugrad.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("cut", [20, 60, 150, -1, -9])
def test_files_of_the_old_format_that_are_cut_off_are_refused(cut: int) -> None:
    data = saved({"w": plugrad.ones(100)}, new=False)
    with pytest.raises((EOFError, pickle.UnpicklingError), match="cut off"):
        plugrad.load(io.BytesIO(data[:cut]))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", EOFError, "the file is empty"),
        (pickle.dumps(3), RuntimeError, "Invalid magic number"),
        (pickle.dumps(run_me), pickle.UnpicklingError, "the head of the file is no plain data"),
        (b"\x80\x02pickle!!!", pickle.UnpicklingError, "Unsupported operand"),
        (b"\0" * 257 + b"ustar" + b"\0" * 300, ValueError, "a tar file"),
        (b"GIF89a.........", ValueError, "is not a safetensors file"),
    ],
)
def test_other_files_are_refused(data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plugrad.load(io.BytesIO(data))


ORIGINAL = {
    "w": plugrad.arange(6.0).reshape(2, 3),
    "p": plugrad.nn.Parameter(plugrad.ones(2)),
    "n": [1, 2.5, ("a", None, True)],
}
DATA = {new: saved(ORIGINAL, new) for new in (True, False)}
EXPECTED = {"w": [[0, 1, 2], [3, 4, 5]], "p": [1, 1], "n": [1, 2.5, ("a", None, True)]}
ERRORS = (
    *(EOFError, NotImplementedError, RuntimeError, TypeError, ValueError),
    pickle.UnpicklingError,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, len(DATA[True]) - 1), st.integers(1, 255)), max_size=3))
def test_changed_bytes_of_a_zip_file_give_an_error_or_the_same_data(
    changes: list[tuple[int, int]],
) -> None:
    data = DATA[True]
    for position, value in changes:
        data = flipped(data, position, value)
    try:
        found = plugrad.load(io.BytesIO(data))
    except ERRORS:
        return
    assert {"w": found["w"].tolist(), "p": found["p"].tolist(), "n": found["n"]} == EXPECTED


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, len(DATA[False]) - 1), st.integers(1, 255), st.booleans())
def test_changed_bytes_of_an_old_file_are_no_crash(position: int, value: int, cut: bool) -> None:
    # The old format has no checksums: other numbers are possible, other errors are not.
    data = DATA[False][:position] if cut else flipped(DATA[False], position, value)
    try:
        plugrad.load(io.BytesIO(data))
    except ERRORS:
        return
    assert not cut


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=40))
def test_any_bytes_as_a_pickle_are_no_crash(text: bytes) -> None:
    try:
        plugrad.load(io.BytesIO(with_pickle(b"\x80\x02" + text + b".")))
    except ERRORS:
        return


def test_a_safetensors_file_that_was_cut_off_is_not_taken_for_a_pickle() -> None:
    """The length of its header may begin as a pickle does."""
    cut = (128).to_bytes(8, "little") + b'{"__metadata__":{"plum'
    with pytest.raises(ValueError, match="is not a safetensors file"):
        plugrad.load(io.BytesIO(cut))
