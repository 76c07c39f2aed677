"""`untyped_storage` tells which tensors share memory."""

from __future__ import annotations

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
