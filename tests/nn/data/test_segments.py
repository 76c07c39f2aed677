"""The memory of a worker's batches: memory that is still referenced is not overwritten."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugrad_nn.utils.data._utils.segments import SMALLEST, Leases, Pool, flat_bytes, has_gaps

SIZES = st.integers(SMALLEST, 20 * SMALLEST)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES),
        st.tuples(st.sampled_from(["send", "forget", "release"]), st.integers(0, 30)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_no_piece_is_given_out_while_a_process_has_it(steps: list[tuple[str, int]]) -> None:
    """Against a list of who has what, with a mark written into each array."""
    pool = Pool()
    marks = itertools.count(1)
    here: list[tuple[Any, int]] = []
    there: list[tuple[int, Any, int]] = []
    for action, number in steps:
        if action == "allocate":
            array = pool.allocate(number)
            assert array is not None
            assert array.nbytes == number
            mark = next(marks) % 251
            array[:] = mark
            here.append((array, mark))
            del array
        elif action == "send" and here:
            array, mark = here[number % len(here)]
            piece = pool.number_of(array)
            assert piece is not None
            pool.sent(piece)
            there.append((piece, pool.memory(piece).bytes()[: array.nbytes], mark))
            del array
        elif action == "forget" and here:
            here.pop(number % len(here))
        elif action == "release" and there:
            piece, _, _ = there.pop(number % len(there))
            pool.released([piece])
        for array, mark in here:
            assert (array == mark).all()
        for _, array, mark in there:
            assert (array == mark).all()
        array = None


def test_a_free_piece_is_used_again() -> None:
    pool = Pool()
    pieces = set()
    for _ in range(10):
        array = pool.allocate(10_000)
        pieces.add(pool.number_of(array))  # type: ignore[arg-type]  # it is large enough
        del array
    assert pieces == {0}
    assert pool.dropped() == []


def test_free_memory_stays_below_what_was_in_use() -> None:
    pool = Pool()
    largest = 40 * SMALLEST
    for factor in range(1, 41):
        array = pool.allocate(factor * SMALLEST)
        del array
    kept = set(range(41)) - set(pool.dropped())
    sizes = [pool.memory(number).nbytes for number in kept if number in pool._memories]
    assert largest <= sum(sizes) <= 2 * 1.25 * largest


def test_small_arrays_are_not_worth_a_piece() -> None:
    assert Pool().allocate(SMALLEST - 1) is None
    assert Pool().allocate(SMALLEST) is not None


def test_without_memory_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(size: int) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("plugrad_nn.multiprocessing.memory.SharedMemory.anonymous", fail)
    assert Pool().allocate(SMALLEST) is None


def test_a_piece_that_has_two_arrays_ends_twice() -> None:
    pool = Pool()
    array = pool.allocate(SMALLEST)
    assert array is not None
    leases = Leases()
    first, second = (leases.lease(0, pool.memory(0)) for _ in range(2))
    del first
    assert (leases.ended(), len(leases)) == ([0], 1)
    view = second[3:].view(np.int8)
    del second
    assert (leases.ended(), len(leases)) == ([], 1)
    del view
    assert (leases.ended(), len(leases)) == ([0], 0)


@settings(max_examples=200, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=0, max_size=4),
    order=st.permutations(range(4)),
    step=st.integers(1, 2),
)
def test_an_array_without_gaps_is_flat_in_some_order(
    shape: list[int], order: list[int], step: int
) -> None:
    axes = [axis for axis in order if axis < len(shape)]
    whole = np.arange(np.prod(shape, dtype=int) * step, dtype=np.float32)[::step]
    array = whole.reshape(shape).transpose(axes) if step == 1 else whole
    spread = array.size > 1 and step == 2
    assert has_gaps(array) == spread
    if not spread:
        assert np.shares_memory(flat_bytes(array), array)
        assert np.array_equal(np.sort(flat_bytes(array).view(np.float32)), np.sort(array.ravel()))
