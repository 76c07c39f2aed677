"""Batching rules of two tensors of any shapes, dtypes and mapped dimensions. Oracle: a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad
from plugrad import vmap
from plugrad.testing.assert_close import assert_close

_DTYPES = ("float32", "float64", "float16", "int64", "int32", "bool", "complex64")
_BROADCASTING: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: plugrad.add(x, y),
    "add_": lambda x, y: x.clone().add_(y),
    "addcmul": lambda x, y: plugrad.addcmul(x, y, y),
    "clamp": lambda x, y: plugrad.clamp(x, min=y),
    "copy_": lambda x, y: x.clone().copy_(y),
    "div": lambda x, y: x / y,
    "eq": lambda x, y: x == y,
    "lerp": lambda x, y: plugrad.lerp(x, y, 0.5),
    "maximum": lambda x, y: plugrad.maximum(x, y),
    "where": lambda x, y: plugrad.where(y == 0, x, y),
}
_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "addmm": lambda x, y: plugrad.addmm(x[0], x, y, beta=0.5, alpha=2),
    "bmm": lambda x, y: plugrad.bmm(x, y),
    "linear": lambda x, y: plugrad.nn.functional.linear(x, y),
    "matmul": lambda x, y: plugrad.matmul(x, y),
    "mv": lambda x, y: plugrad.mv(x, y),
    "vdot": lambda x, y: plugrad.vdot(x, y),
}


@dataclass
class _Pair:
    """Two tensors of a mapped function: their shapes, dtypes, and dimensions, None for unmapped."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    batch_size: int
    dims: tuple[int | None, int | None]


def _dims(shapes: Any) -> st.SearchStrategy[Any]:
    places = [st.none() | st.integers(-len(shape) - 1, len(shape)) for shape in shapes]
    return st.tuples(*places).filter(lambda dims: dims != (None, None))


def _pairs(shapes: st.SearchStrategy[Any], dtypes: Any) -> st.SearchStrategy[_Pair]:
    return shapes.flatmap(
        lambda pair: st.builds(_Pair, st.just(pair), dtypes, st.integers(1, 3), _dims(pair))
    )


_SHAPE = st.lists(st.sampled_from([1, 2, 2, 3]), max_size=3).map(tuple)
_OF_TWO = st.tuples(_SHAPE, st.integers(0, 3), st.lists(st.booleans(), min_size=3, max_size=3)).map(
    # The second has the last dimensions of the first, some of them of length 1.
    lambda drawn: (
        drawn[0],
        tuple(
            1 if one else size for size, one in zip(drawn[0][drawn[1] :], drawn[2], strict=False)
        ),
    )
)
_ANY_DTYPES = st.tuples(st.sampled_from(_DTYPES), st.sampled_from(_DTYPES))
_EQUAL_DTYPES = st.sampled_from(["float64", "int64", "complex128"]).map(lambda name: (name, name))


@pytest.mark.parametrize("name", _BROADCASTING)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(pair=_pairs(st.one_of(_OF_TWO, _OF_TWO.map(lambda pair: pair[::-1])), _ANY_DTYPES))
def test_broadcasting(name: str, pair: _Pair) -> None:
    _check(_BROADCASTING[name], pair, written=name.endswith("_"))


@pytest.mark.parametrize("name", _PRODUCTS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(pair=_pairs(st.tuples(_SHAPE, _SHAPE), _EQUAL_DTYPES))
def test_products(name: str, pair: _Pair) -> None:
    _check(_PRODUCTS[name], pair)


def _check(function: Callable[[Any, Any], Any], pair: _Pair, written: bool = False) -> None:
    rng = np.random.default_rng(0)
    tensors = [
        plugrad.from_numpy(rng.integers(0, 3, (pair.batch_size, *shape))).to(
            getattr(plugrad, dtype)
        )
        for shape, dtype in zip(pair.shapes, pair.dtypes, strict=True)
    ]
    given = [
        tensor[0] if dim is None else tensor.movedim(0, dim)
        for tensor, dim in zip(tensors, pair.dims, strict=True)
    ]

    def turn(number: int) -> Any:
        chosen = [
            tensor[0 if dim is None else number]
            for tensor, dim in zip(tensors, pair.dims, strict=True)
        ]
        return function(*chosen)

    mapped = vmap(function, in_dims=pair.dims)
    try:
        expected = plugrad.stack([turn(number) for number in range(pair.batch_size)], 0)
    except (RuntimeError, IndexError, TypeError) as error:
        with pytest.raises(type(error)):
            mapped(*given)
        return
    if written and pair.dims[0] is None:
        with pytest.raises(RuntimeError, match="more elements than `self`"):
            mapped(*given)
        return
    assert_close(mapped(*given), expected, equal_nan=True)
