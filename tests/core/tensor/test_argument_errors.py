"""Errors of public functions whose arguments do not fit. Oracle: PyTorch's type and first line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

SAME: list[Any] = [
    lambda lib: lib.ones(2, 3).mul("a"),
    lambda lib: lib.mul(lib.ones(2), [1]),
    lambda lib: lib.mul("a", lib.ones(2)),
    lambda lib: lib.matmul(lib.ones(2), np.ones(2)),
    lambda lib: lib.matmul(lib.ones(2), np.float64(2)),
    lambda lib: lib.matmul(lib.ones(2), lib.float32),
    lambda lib: lib.matmul(lib.ones(2), lib.device("cpu")),
    lambda lib: lib.matmul(lib.ones(2), lib.Size([2])),
    lambda lib: lib.ones(2, 3).transpose(0, "a"),
    lambda lib: lib.cumsum(lib.ones(2), True),
    lambda lib: lib.cumsum(lib.ones(2), lib.ones(1, dtype=lib.int64)),
    lambda lib: lib.cumsum(lib.ones(2), np.ones(3)),
    lambda lib: lib.cumsum(lib.ones(2), 2**70),
    lambda lib: lib.ones(2, 3).reshape("a"),
    lambda lib: lib.ones(2, 3).reshape([2, "a"]),
    lambda lib: lib.zeros("a"),
    lambda lib: lib.zeros([2], dtype=3),
    lambda lib: lib.zeros([2], device=3.0),
    lambda lib: lib.ones(2, dtype=lib.int8).fill_(300),
    lambda lib: lib.where(lib.ones(2, 3) > 0, lib.ones(2, 3), lib.ones(5)),
    lambda lib: lib.addcmul(lib.ones(2, 3), lib.ones(5), lib.ones(2, 3)),
    lambda lib: lib.lerp(lib.ones(3), lib.ones(4), 0.5),
    lambda lib: lib.zeros(2**62),
]
# Where PyTorch says what is of its own making: a trace of its frames, an OverflowError of Python's.
OTHER: list[Any] = [
    (lambda: plugrad.zeros(2**70), TypeError, 'at pos 1 with error "Overflow when unpacking'),
    (lambda: plugrad.ones(2).sum([2**70]), TypeError, "Overflow when unpacking"),
    (lambda: plugrad.ones(2).clamp(2**70), RuntimeError, "without overflow"),
    (lambda: plugrad.ones(2) * 10**400, RuntimeError, "without overflow"),
    (lambda: plugrad.tensor([1, 2]) * 2**70, RuntimeError, "without overflow"),
    (lambda: plugrad.zeros(2**44), RuntimeError, "you tried to allocate 70368744177664 bytes"),
]


@pytest.mark.parametrize("call", SAME)
def test_errors_are_those_of_pytorch(call: Any, torch_oracle: Any) -> None:
    with pytest.raises(Exception) as theirs:  # whatever PyTorch raises
        call(torch_oracle)
    with pytest.raises(type(theirs.value)) as ours:
        call(plugrad)
    words = str(theirs.value).partition("\n")[0].replace("torch.", "plugrad.")
    assert str(ours.value).partition("\n")[0] == words


@pytest.mark.parametrize(("call", "error", "words"), OTHER)
def test_errors_in_words_of_our_own(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()
