"""Models that write to tensors and to views of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import Tensor, nn
from plugrad.onnx import OnnxExporterError
from tests.onnx.exported import agrees, compare, exported


def rows(x: Tensor) -> Any:
    x = x.clone()
    row = x[1]
    x += 1
    row.mul_(2)
    return x, row


def columns(x: Tensor) -> Any:
    x = x.clone()
    turned = x.t()
    turned[2].add_(5)
    flat = x.view(-1)
    flat[0] = 7.0
    return x, turned, flat


def parts(x: Tensor) -> Any:
    x = x.clone()
    a, b = x.split(2, 1)
    a.zero_()
    b.copy_(plugrad.ones(1))
    a[0, 0] = 3
    return x, a


def overlapping(x: Tensor) -> Any:
    x = x.clone()
    windows = x.unfold(1, 2, 2)
    windows[:, 1] = -1
    x.diagonal().fill_(9)
    return x, windows


def buffers(x: Tensor) -> Tensor:
    out = plugrad.zeros(x.shape[0], 2)
    out[:, 0] = x.sum(1)
    out[:, 1] = x.amax(1)
    return out


def masked(x: Tensor) -> Tensor:
    y = x.clone()
    y[y > 0] = 0
    return y


def indexed(x: Tensor) -> Tensor:
    y = x.clone()
    y[plugrad.tensor([0, 1]), plugrad.tensor([2, 1])] = plugrad.tensor([10.0, 20.0])
    y.scatter_(1, plugrad.tensor([[0], [3]]), 5.0)
    y.index_add_(0, plugrad.tensor([1]), plugrad.ones(1, 4))
    return y


def integers(x: Tensor) -> Tensor:
    counts = plugrad.zeros(4, dtype=plugrad.int64)
    counts += x[0] > 0
    return counts


@pytest.mark.parametrize(
    "model", [rows, columns, parts, overlapping, buffers, masked, indexed, integers]
)
def test_writes_are_seen_through_views(model: Callable[..., Any]) -> None:
    agrees(model, plugrad.randn(2, 4))


@pytest.mark.parametrize("model", [rows, columns, parts, buffers, masked])
def test_writes_with_a_dynamic_size(model: Callable[..., Any]) -> None:
    program = exported(model, plugrad.randn(2, 4), dynamic_axes={"x": {0: "batch"}})
    compare(program, model, plugrad.randn(3, 4))


def test_writes_to_an_input_stay_within() -> None:
    x = plugrad.randn(2, 3)
    before = x.clone()
    program = agrees(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)), x.clone())
    given = before.clone()
    program(given)
    assert plugrad.equal(given, before)


def test_one_tensor_given_twice_is_written_to_once() -> None:
    def twice(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x + y

    x = plugrad.zeros(2)
    program = exported(twice, x, x)
    (found,) = program(plugrad.zeros(2), plugrad.zeros(2))
    assert found.tolist() == [2.0, 2.0]


def test_written_buffers_are_refused_by_name() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with pytest.raises(
        OnnxExporterError, match=r"writes to '1.num_batches_tracked'.*call model.eval\(\) before"
    ):
        plugrad.onnx.export(model, (plugrad.randn(2, 3),))


def test_random_numbers_are_refused_with_module_and_line() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout())
    with pytest.raises(
        OnnxExporterError,
        match=r"draws random numbers.*call model.eval\(\).*in the module '1', at .*test_memory.py",
    ):
        plugrad.onnx.export(model, (plugrad.randn(2, 3),))
