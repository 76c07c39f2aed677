"""Recurrent layers beside plugrad-cpu's: both directions, with and without what is optional."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.nn
from plugrad.testing import assert_close

pytest.importorskip("plugrad_native.compiled")

# Times, rows, width.
SIZES = [(1, 1, 1), (5, 3, 4), (4, 2, 33), (3, 40, 600)]


def same(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
        return
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    near = 1e-11 if found.dtype == np.float64 else 2e-5
    scale = float(np.abs(expected).max()) or 1.0
    np.testing.assert_allclose(found, expected, rtol=near, atol=near * scale)


def all_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        same(one, other)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_lstm(kernels: Any, plain: Any, draw: Any, size: Any, reverse: bool) -> None:
    times, rows, width = size
    hx, cx, w_hh = draw(rows, width), draw(rows, width), draw(4 * width, width) / width
    gates = draw(times * rows, 4 * width)
    sizes = [rows] * times
    given = (gates, hx, cx, w_hh, sizes, reverse)
    expected = plain["_lstm_layer"](*given)
    all_same(kernels.lstm_layer(*given), expected)
    output, _, _, workspace = expected
    for to_output, to_hy, to_cy in product((True, False), repeat=3):
        grads = (
            draw(*output.shape) if to_output else None,
            draw(rows, width) if to_hy else None,
            draw(rows, width) if to_cy else None,
        )
        kept = [None if grad is None else grad.copy() for grad in grads]
        for wanted in ((True, True, True, True), (True, False, False, False)):
            rest = (hx, cx, w_hh, output, workspace, sizes, reverse, wanted)
            all_same(
                kernels.lstm_layer_backward(*grads, *rest),
                plain["_lstm_layer_backward"](*grads, *rest),
            )
        for grad, before in zip(grads, kept, strict=True):
            np.testing.assert_array_equal(grad, before)  # type: ignore[arg-type]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_gru(
    kernels: Any, plain: Any, draw: Any, size: Any, with_bias: bool, reverse: bool
) -> None:
    times, rows, width = size
    hx, w_hh = draw(rows, width), draw(3 * width, width) / width
    b_hh = draw(3 * width) if with_bias else None
    gates = draw(times * rows, 3 * width)
    sizes = [rows] * times
    given = (gates, hx, w_hh, b_hh, sizes, reverse)
    expected = plain["_gru_layer"](*given)
    all_same(kernels.gru_layer(*given), expected)
    output, _, workspace = expected
    for to_output, to_hy in product((True, False), repeat=2):
        grads = (
            draw(*output.shape) if to_output else None,
            draw(rows, width) if to_hy else None,
        )
        for wanted in ((True, True, True, with_bias), (True, False, False, False)):
            rest = (hx, w_hh, output, workspace, sizes, reverse, wanted)
            all_same(
                kernels.gru_layer_backward(*grads, *rest),
                plain["_gru_layer_backward"](*grads, *rest),
            )


def test_a_gradient_that_is_repeated_is_taken(kernels: Any, plain: Any, draw: Any) -> None:
    hx, cx, w_hh, gates = draw(2, 3), draw(2, 3), draw(12, 3), draw(8, 12)
    sizes = [2] * 4
    output, _, _, workspace = plain["_lstm_layer"](gates, hx, cx, w_hh, sizes, False)
    ones = np.broadcast_to(np.ones((), hx.dtype), output.shape)
    rest = (hx, cx, w_hh, output, workspace, sizes, False, (True, True, True, True))
    all_same(
        kernels.lstm_layer_backward(ones, None, None, *rest),
        plain["_lstm_layer_backward"](ones, None, None, *rest),
    )


def test_what_is_not_served_is_declined(kernels: Any, draw: Any) -> None:
    hx, cx, w_hh, gates = draw(2, 3), draw(2, 3), draw(12, 3), draw(8, 12)
    sizes = [2] * 4
    for given in (
        (gates, hx, cx, w_hh, [2, 2, 2, 1, 1], False),  # sequences of different lengths
        (gates, hx, cx, w_hh, [], False),
        (gates, hx, cx, w_hh, sizes[1:], False),
        (gates, hx, cx, w_hh[:8], sizes, False),
        (gates, hx, cx[:1], w_hh, sizes, False),
        (gates[:, ::-1], hx, cx, w_hh, sizes, False),
        (gates.astype(np.float16), hx, cx, w_hh, sizes, False),
        (gates, hx, cx, w_hh, sizes),
    ):
        assert kernels.lstm_layer(*given) is NotImplemented
    assert kernels.gru_layer(gates, hx, w_hh, None, sizes, False) is NotImplemented
    bias = draw(9)
    given = (gates[:, :9].copy(), hx, w_hh[:9], bias[:8], sizes, False)
    assert kernels.gru_layer(*given) is NotImplemented
    assert type(kernels.gru_layer(*given[:3], bias, *given[4:])) is tuple


def gradients(layer: Any, x: Any) -> list[Any]:
    x.grad = None
    layer.zero_grad()
    out, _ = layer(x)
    out.square().sum().backward()
    return [out, x.grad, *(weight.grad for weight in layer.parameters())]


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layers_use_them(request: pytest.FixtureRequest, kind: str) -> None:
    plugrad.manual_seed(3)
    layer: Any = getattr(plugrad.nn, kind)(3, 4, bidirectional=True, num_layers=2)
    x = plugrad.randn(5, 2, 3, requires_grad=True)
    expected = gradients(layer, x)
    request.getfixturevalue("native")
    with plugrad.record_dispatch_trace() as events:
        found = gradients(layer, x)
    ran = {event.op for event in events if event.kind == "variant"}
    name = kind.lower()
    assert {f"plugrad::_{name}_layer", f"plugrad::_{name}_layer_backward"} <= ran
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)
