"""Values that Python reads while a function is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import CaptureError
from tests.core.transforms.rerun import names, rerun


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x[0] > 1),
        lambda x: float(x[0]),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: repr(x),
        lambda x: plugrad.equal(x, x),
        lambda x: plugrad.allclose(x, x),
        lambda x: x if (x > 0).all() else -x,
        lambda x: plugrad.rand(2).tolist(),
    ],
)
def test_values_of_inputs_are_refused(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(CaptureError, match=r"test_capture_values.py:\d+: lambda x"):
        plugrad.capture(ask, plugrad.ones(2))


def test_values_of_constants_are_taken_for_ever() -> None:
    switch = plugrad.tensor([1.0, 0.0])
    graph = rerun(lambda x: x * 2 if switch[0] else x, plugrad.ones(2))
    switch.zero_()
    assert graph(plugrad.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("first", [True, False])
def test_values_of_constants_that_are_written_to_are_refused(first: bool) -> None:
    count = plugrad.tensor([0.0])

    def function(x: Any) -> Any:
        if first:
            count.add_(1)
        y = x * count.item()
        if not first:
            count.add_(1)
        return y

    with pytest.raises(CaptureError, match=r"y = x \* count.item\(\)"):
        plugrad.capture(function, plugrad.ones(2))


def test_what_operators_read_is_theirs() -> None:
    def function(x: Any) -> Any:
        return x[x > 0], plugrad.nonzero(x)

    graph = rerun(function, plugrad.tensor([1.0, -1.0, 2.0]))
    assert "index.Tensor" in names(graph)
    assert graph(plugrad.tensor([1.0, -1.0, -2.0]))[0].tolist() == [1.0]
