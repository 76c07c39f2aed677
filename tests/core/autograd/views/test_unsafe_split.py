"""`unsafe_split` and its like give parts that are no views; integer results carry no gradient."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

SPLITS: dict[str, Callable[[Any], Any]] = {
    "UnsafeSplitBackward0": lambda x: x.unsafe_split(1),
    "UnsafeSplitWithSizesBackward0": lambda x: x.unsafe_split_with_sizes((1, 2)),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_part_can_be_written_to(lib: ModuleType, name: str) -> None:
    x = lib.ones(3, requires_grad=True)
    base = x * 1
    first, second = SPLITS[name](base)[:2]
    assert first.grad_fn.name() == name
    assert not first._is_view()
    first.mul_(second[:1] * 5)
    assert base._version == 0
    first.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 0.0]


def test_chunks_can_be_written_to(lib: ModuleType) -> None:
    x = lib.ones(4, requires_grad=True)
    first, second = (x * 1).unsafe_chunk(2)
    first.mul_(3)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]


def test_windows_share_memory_and_add_up_their_gradients(lib: ModuleType) -> None:
    x = lib.ones(4, requires_grad=True)
    base = x * 1
    windows = base.unfold(0, 2, 1)
    assert windows._base is base
    assert windows.grad_fn.name() == "UnfoldBackward0"
    (windows * lib.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 7.0, 5.0]


def test_places_in_a_sequence_require_no_grad(lib: ModuleType) -> None:
    x = lib.ones(3, requires_grad=True)
    for result in (
        lib.searchsorted(x, x),
        lib.bucketize(x, x),
        lib.isin(x, x),
        lib.signbit(x),
    ):
        assert not result.requires_grad
