"""`out=` of another shape than the result: it must not grow into what is read."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("torch_oracle") if request.param == "torch" else plugrad


GROWING = {
    "cat": lambda lib, x: lib.cat([x, x], out=x[:2]),
    "cat of nothing": lambda lib, x: lib.cat([empty := lib.zeros(0), x], out=empty),
    "stack": lambda lib, x: lib.stack([x, x], out=x[:1]),
    "take": lambda lib, x: lib.take(x, lib.tensor([0, 1]), out=x[:1]),
}
EXPANDED = {
    "index_select": lambda lib, x, out: lib.index_select(x, 0, lib.tensor([0, 1]), out=out),
    "take": lambda lib, x, out: lib.take(x, lib.tensor([0, 1]), out=out),
    "masked_select": lambda lib, x, out: lib.masked_select(x, x > 2, out=out),
    "add": lambda lib, x, out: lib.add(x, x, out=out),
}


@pytest.mark.parametrize("name", GROWING)
def test_out_that_grows_into_the_input_is_refused(lib: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        GROWING[name](lib, lib.arange(4.0))


def test_out_that_grows_into_the_index_is_refused(lib: Any) -> None:
    index = lib.tensor([0, 1, 2])
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        lib.gather(lib.tensor([3, 4, 5]), 0, index[1:], out=index[:1])


@pytest.mark.parametrize("name", EXPANDED)
def test_out_that_repeats_its_elements_is_refused(lib: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        EXPANDED[name](lib, lib.arange(4.0), lib.zeros(1).expand(3))


def test_out_apart_from_the_input_is_resized(lib: Any) -> None:
    row = lib.arange(6.0)
    with pytest.warns(UserWarning, match="resized"):
        made = lib.cat([row[:1], row[:1]], out=row[5:])
    assert lib.equal(made, lib.zeros(2))
