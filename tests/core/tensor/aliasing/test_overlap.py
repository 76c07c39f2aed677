"""Writing to a tensor with elements that share memory."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(plugrad.arange(3.0)),
        lambda x: x.mul_(2),
        lambda x: x.exp_(),
        lambda x: x.copy_(plugrad.arange(3.0)),
    ],
)
def test_elements_that_share_memory_cannot_be_written_one_by_one(write: Any) -> None:
    x = plugrad.ones(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(x.expand(3))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(plugrad.ones(2, 1).expand(2, 3)[0])
    assert x.tolist() == [1.0]


def test_filling_them_is_allowed() -> None:
    x = plugrad.ones(1)
    x.expand(3).fill_(5)
    assert x.tolist() == [5.0]
    x.expand(3).zero_()
    assert x.tolist() == [0.0]
    x.expand(3).masked_fill_(plugrad.tensor([True, False, False]), 2.0)
    assert x.tolist() == [2.0]


def test_views_without_repetition_can_be_written() -> None:
    x = plugrad.ones(3, 1)
    x.expand(3, 1).add_(1)
    x[:1].expand(1, 1).add_(1)
    x[:0].expand(0, 4).add_(1)
    x.T.mul_(2)
    assert x.tolist() == [[6.0], [4.0], [4.0]]
