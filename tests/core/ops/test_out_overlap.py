"""`out=` in the memory of an operand: refused where PyTorch refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from tests.core.ops.harness import needs_torch, torch

SHARED = "^unsupported operation: some elements of the input tensor and the written-to tensor"

REFUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "gather": lambda lib, x, i: lib.gather(x, 0, i, out=x[:3]),
    "gather, the index": lambda lib, x, i: lib.gather(i, 0, i, out=i),
    "index_select": lambda lib, x, i: lib.index_select(x, 0, i, out=x),
    "take": lambda lib, x, i: lib.take(i, i[:2], out=i[:2]),
    "masked_select": lambda lib, x, i: lib.masked_select(x, x > 0, out=x),
    "cat": lambda lib, x, i: lib.cat([x[:2], x[2:4]], out=x[:4]),
    "stack": lambda lib, x, i: lib.stack([x, x], out=x),
    "kthvalue": lambda lib, x, i: lib.kthvalue(x, 2, out=(x, lib.zeros(0, dtype=lib.int64))),
    "max.dim": lambda lib, x, i: lib.max(x.view(2, 3), 0, out=(x[:3], i)),
    "add, shifted": lambda lib, x, i: lib.add(x[1:], x[1:], out=x[:5]),
    "sin, shifted": lambda lib, x, i: lib.sin(x[1:], out=x[:5]),
    "cumsum, shifted": lambda lib, x, i: lib.cumsum(x[1:], 0, out=x[:5]),
}
TAKEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, x, i: lib.add(x[:3], x[:3], out=x[:3]),
    "cumsum": lambda lib, x, i: lib.cumsum(x, 0, out=x),
    "sum": lambda lib, x, i: lib.sum(x.view(2, 3), 0, out=x[:3]),
    "index_add": lambda lib, x, i: lib.index_add(x, 0, i, lib.ones(3), out=x),
    "apart": lambda lib, x, i: lib.gather(x[3:], 0, i, out=x[:3]),
}


def _operands(lib: Any) -> tuple[Any, Any]:
    return lib.tensor([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]), lib.tensor([0, 2, 1])


@pytest.mark.parametrize("name", REFUSED)
def test_out_that_is_read_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=SHARED):
        REFUSED[name](plugrad, *_operands(plugrad))


@needs_torch
@pytest.mark.parametrize("name", REFUSED)
def test_pytorch_refuses_the_same(name: str) -> None:
    with pytest.raises(RuntimeError, match=SHARED):
        REFUSED[name](torch, *_operands(torch))


@pytest.mark.parametrize("name", TAKEN)
def test_out_that_is_all_of_an_operand_is_taken(name: str) -> None:
    x, i = _operands(plugrad)
    fresh = TAKEN[name](plugrad, x, i)
    y, j = _operands(plugrad)
    expected = {
        "add": lambda: y[:3] + y[:3],
        "cumsum": lambda: y.cumsum(0),
        "sum": lambda: y.view(2, 3).sum(0),
        "index_add": lambda: y.index_add(0, j, plugrad.ones(3)),
        "apart": lambda: y[3:].gather(0, j),
    }[name]()
    assert fresh.tolist() == expected.tolist()


def test_dtypes_of_out_are_refused_in_words_of_their_own() -> None:
    with pytest.raises(RuntimeError, match=r"^multinomial expects Long tensor out, got: Float$"):
        plugrad.multinomial(plugrad.ones(2), 1, out=plugrad.zeros(1))
    one = plugrad.ones(1, dtype=plugrad.float64)
    with pytest.raises(RuntimeError, match=r"^Expected object of scalar type ComplexDouble"):
        plugrad.complex(one, one, out=plugrad.zeros(1, dtype=plugrad.complex64))
