"""`untyped_storage` shows which tensors share memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad


def test_views_share_the_storage_of_their_base() -> None:
    x = plugrad.zeros(2, 3)
    storage = x.untyped_storage()
    assert x[1].t().untyped_storage() == storage
    assert x.as_strided((2,), (1,), 3).untyped_storage() == storage
    assert x[1].untyped_storage().data_ptr() == storage.data_ptr() == x.data_ptr()
    assert hash(x[1].untyped_storage()) == hash(storage)


def test_copies_have_their_own_storage() -> None:
    x = plugrad.zeros(2, 3)
    assert x.clone().untyped_storage() != x.untyped_storage()
    assert x.clone().untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_a_storage_counts_bytes() -> None:
    storage = plugrad.zeros(2, 3)[1].untyped_storage()
    assert storage.nbytes() == storage.size() == len(storage) == 24
    assert storage.element_size() == 1
    assert storage.device == plugrad.device("cpu")
    assert plugrad.zeros(0).untyped_storage().data_ptr() == 0


def test_tensors_that_cannot_be_written_to_tell_who_shares_what_is_written(immutable: str) -> None:
    x = plugrad.zeros(2, 3, device=immutable)
    storage = x.untyped_storage()
    row = x[1]
    assert row.untyped_storage() == x.t().untyped_storage() == storage
    row.add_(1)
    assert row.untyped_storage() == storage
    assert x.clone().untyped_storage() != storage
    assert row.untyped_storage().nbytes() == 24


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    """plugrad; and PyTorch where it is installed."""
    if request.param == "torch":
        return request.getfixturevalue("torch_oracle")
    return plugrad


def test_bytes_are_read_and_written(lib: Any) -> None:
    x = lib.arange(3.0)
    storage = x.untyped_storage()
    assert storage.tolist() == list(storage) == [0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64]
    assert (storage[-1], storage[2:8].tolist()) == (64, [0, 0, 0, 0, 128, 63])
    storage[3] = 64
    assert x.tolist() == [2.0, 1.0, 2.0]
    part = storage[4:8]
    assert part.data_ptr() == storage.data_ptr() + 4
    part.fill_(0)
    assert x.tolist() == [2.0, 0.0, 2.0]


def test_a_clone_is_a_storage_of_its_own(lib: Any) -> None:
    x = lib.ones(2)
    copy = x.untyped_storage().clone()
    x.zero_()
    assert copy.tolist() == [0, 0, 128, 63] * 2
    x.untyped_storage().copy_(copy)
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="self was 8 bytes but src was 3 bytes"):
        x.untyped_storage().copy_(lib.UntypedStorage(3))


def test_a_storage_is_made_of_bytes(lib: Any) -> None:
    assert lib.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert lib.UntypedStorage(4).nbytes() == 4
    assert lib.UntypedStorage().tolist() == []
    assert repr(lib.UntypedStorage([1, 2])).startswith(" 1\n 2\n[")


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (12, IndexError, "index 12 out of range for storage of size 12"),
        (-13, IndexError, "out of range for storage of size 12"),
        ("a", TypeError, "UntypedStorage with str"),
    ],
)
def test_an_index_that_is_none_is_refused(
    lib: Any, index: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lib.zeros(3).untyped_storage()[index]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_typed_storage_has_the_elements_of_the_whole_memory(lib: Any) -> None:
    x = lib.arange(6.0).view(2, 3)
    storage = x[1].storage()
    assert storage.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (storage.size(), storage.nbytes(), storage.element_size()) == (6, 24, 4)
    assert (storage.dtype, storage[1]) == (lib.float32, 1.0)
    assert storage.type() == f"{lib.__name__}.FloatStorage"
    assert storage.data_ptr() == x.data_ptr()
    assert storage.untyped().nbytes() == 24
    storage[5] = 7.0
    assert x[1, 2].item() == 7.0


def test_memory_that_does_not_lie_row_by_row_is_read_as_it_lies() -> None:
    x = plugrad.from_numpy(np.asfortranarray([[1, 2], [3, 4]], dtype=np.uint8))
    assert x.untyped_storage().tolist() == [1, 3, 2, 4]


def test_a_write_to_memory_that_cannot_be_written_to_reaches_all_views(immutable: str) -> None:
    x = plugrad.arange(3.0, device=immutable)
    row = x[:2]
    x.untyped_storage()[3] = 64
    row.storage()[1] = 5.0
    assert (x.tolist(), row.tolist()) == ([2.0, 5.0, 2.0], [2.0, 5.0])
    assert x.untyped_storage().cpu().nbytes() == 12


def test_set_takes_a_storage(lib: Any) -> None:
    base = lib.arange(6.0)
    x = lib.empty(0).set_(base.untyped_storage(), 1, (2, 2), (2, 1))
    assert (x.tolist(), x.stride(), x.storage_offset()) == ([[1, 2], [3, 4]], (2, 1), 1)
    x.add_(10)
    assert base.tolist() == [0, 11, 12, 13, 14, 5]
    assert lib.empty(0).set_(base.untyped_storage()).tolist() == base.tolist()
    whole = lib.zeros(4, dtype=lib.int64)
    assert lib.empty(0, dtype=lib.int64).set_(whole, 1, (2,)).tolist() == [0, 0]


def test_set_beyond_the_storage_is_refused() -> None:
    # PyTorch makes the storage larger, which an array's cannot be.
    storage = plugrad.zeros(6).untyped_storage()
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        plugrad.empty(0).set_(storage, 1, (5, 2), (2, 1))


def test_a_storage_is_an_array_of_numpy() -> None:
    x = plugrad.arange(3.0)
    np.asarray(x.storage())[1] = 7
    assert x.tolist() == [0, 7, 2]
    assert np.asarray(x.untyped_storage()).nbytes == 12
    part = plugrad.asarray(x.untyped_storage()[4:8], dtype=plugrad.uint8)
    part.zero_()
    assert x.tolist() == [0, 0, 2]


def test_storages_of_other_devices_are_set_and_shared(second_backend: str) -> None:
    base = plugrad.arange(4.0, device="second")
    x = plugrad.empty(0, device="second").set_(base.untyped_storage(), 2, (2,))
    x.add_(1)
    assert base.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("shared", [True, False])
def test_a_file_is_memory(lib: Any, tmp_path: Any, shared: bool) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(8)))
    storage = lib.UntypedStorage.from_file(str(path), shared=shared, nbytes=4)
    assert storage.tolist() == [0, 1, 2, 3]
    storage[0] = 9
    assert path.read_bytes()[0] == (9 if shared else 0)
    if shared:
        grown = lib.UntypedStorage.from_file(str(tmp_path / "new"), shared=True, nbytes=3)
        assert grown.tolist() == [0, 0, 0]
    else:
        with pytest.raises(RuntimeError):
            lib.UntypedStorage.from_file(str(path), shared=False, nbytes=9)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_are_named_by_dtype(lib: Any) -> None:
    storage = lib.tensor([1.0, 2.0]).storage()
    assert isinstance(storage, lib.FloatStorage)
    assert not isinstance(storage, lib.DoubleStorage)
    assert lib.LongStorage([1, 2]).tolist() == [1, 2]
    assert lib.ComplexFloatStorage.dtype is lib.complex64
    assert [lib.is_storage(x) for x in (storage, storage.untyped(), lib.ones(1))] == [1, 1, 0]
