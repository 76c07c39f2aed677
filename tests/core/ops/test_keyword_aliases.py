"""NumPy's names for `dim` and `keepdim`, which PyTorch takes everywhere."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad

X = [[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]]


@pytest.mark.parametrize(
    ("by_axis", "by_dim"),
    [
        (lambda x: x.sum(axis=1), lambda x: x.sum(dim=1)),
        (lambda x: x.sum(axis=(0, 1), keepdims=True), lambda x: x.sum((0, 1), True)),
        (lambda x: x.sum(axis=None), lambda x: x.sum()),
        (lambda x: plugrad.mean(x, axis=0), lambda x: plugrad.mean(x, 0)),
        (lambda x: x.max(axis=1, keepdims=True).values, lambda x: x.max(1, True).values),
        (lambda x: x.argmax(axis=0), lambda x: x.argmax(dim=0)),
        (lambda x: x.softmax(axis=1), lambda x: x.softmax(1)),
        (lambda x: x.cumsum(axis=1), lambda x: x.cumsum(1)),
        (lambda x: x.unsqueeze(axis=0), lambda x: x.unsqueeze(0)),
        (lambda x: x.select(axis=1, index=2), lambda x: x.select(1, 2)),
        (lambda x: plugrad.cat([x, x], axis=1), lambda x: plugrad.cat([x, x], 1)),
        (lambda x: plugrad.stack([x, x], axis=1), lambda x: plugrad.stack([x, x], 1)),
        (
            lambda x: plugrad.index_select(x, axis=1, index=plugrad.tensor([0])),
            lambda x: plugrad.index_select(x, 1, plugrad.tensor([0])),
        ),
    ],
)
def test_axis_means_dim(by_axis: Any, by_dim: Any) -> None:
    x = plugrad.tensor(X)
    assert by_axis(x).tolist() == by_dim(x).tolist()
    assert by_axis(x).shape == by_dim(x).shape


def test_out_goes_with_axis() -> None:
    out = plugrad.empty(2)
    assert plugrad.sum(plugrad.tensor(X), axis=1, out=out) is out
    assert out.tolist() == [8.0, 10.0]


@pytest.mark.parametrize("function", ["sum", "softmax", "max"])
def test_both_names_at_once_are_refused(function: str) -> None:
    with pytest.raises(TypeError, match=rf"{function}\(\) (got an unexpected keyword|received)"):
        getattr(plugrad.tensor(X), function)(dim=1, axis=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.softmax(), r'softmax\(\) missing 1 required positional arguments: "dim"'),
        (
            lambda x: x.index_select(),
            r'index_select\(\) missing 2 required positional arguments: "dim", "index"',
        ),
    ],
)
def test_neither_name_is_an_error(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(plugrad.tensor(X))
