"""The device "meta": tensors with a shape and a dtype, but no data; PyTorch is the oracle."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import plugrad
from plugrad.errors import OperatorNotFoundError


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        return pytest.importorskip("torch", reason="PyTorch is not installed")
    return importlib.import_module("plugrad")


def test_it_prints_its_shape(lib: Any) -> None:
    x = lib.empty(2, 3, device="meta")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert str(x.device) == "meta"
    assert x.sum().shape == ()


def test_there_is_no_data(lib: Any) -> None:
    x = lib.ones(2, device="meta")
    for ask in (x.sum().item, lambda: float(x.sum()), lambda: bool(x.sum())):
        with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta tensors"):
            ask()
    for ask in (x.cpu, lambda: x.to("cpu"), x.tolist):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            ask()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()


def test_tensors_move_there(lib: Any) -> None:
    x = lib.ones(2, 3, dtype=lib.float64).to("meta")
    assert (x.shape, x.dtype, x.device.type) == ((2, 3), lib.float64, "meta")
    assert lib.tensor([1, 2], device="meta").dtype is lib.int64


def test_views_have_strides_and_share_memory(lib: Any) -> None:
    x = lib.empty(4, 6, 8, device="meta")
    views = [
        x.transpose(0, 2),
        x.permute(2, 0, 1),
        x[1],
        x[:, 1:5:2],
        x.diagonal(1, 0, 2),
        x.unsqueeze(1).expand(4, 3, 6, 8),
        x.view(24, 8),
        x.transpose(0, 1).transpose(0, 1).view(2, 2, -1),
        x[:, 2:4].reshape(4, 2, 2, 4),
        x.transpose(0, 1).reshape(24, 8),
    ]
    oracle = lib.zeros(4, 6, 8)
    expected = [
        oracle.transpose(0, 2),
        oracle.permute(2, 0, 1),
        oracle[1],
        oracle[:, 1:5:2],
        oracle.diagonal(1, 0, 2),
        oracle.unsqueeze(1).expand(4, 3, 6, 8),
        oracle.view(24, 8),
        oracle.view(2, 2, -1),
        oracle[:, 2:4].reshape(4, 2, 2, 4),
        oracle.transpose(0, 1).reshape(24, 8),
    ]
    for found, wanted in zip(views, expected, strict=True):
        assert found.shape == wanted.shape
        assert found.stride() == wanted.stride()
        assert found.storage_offset() == wanted.storage_offset()
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size"):
        x.transpose(0, 1).view(24, 8)
    x[0].add_(1)
    assert x._version == 1


def test_gradients_have_shapes(lib: Any) -> None:
    x = lib.empty(3, 4, device="meta", requires_grad=True)
    w = lib.empty(4, 2, device="meta", requires_grad=True)
    (x @ w).relu().sum().backward()
    assert x.grad.shape == (3, 4)
    assert w.grad.shape == (4, 2)
    assert x.grad.device.type == "meta"


def test_errors_are_found(lib: Any) -> None:
    x = lib.empty(2, 3, device="meta")
    with pytest.raises(
        RuntimeError, match=r"must match the size of tensor b|Attempting to broadcast"
    ):
        x + lib.empty(4, device="meta")
    with pytest.raises(RuntimeError, match=r"cannot be multiplied|same reduction dim"):
        x @ x


def test_random_and_filled_tensors(lib: Any) -> None:
    for make in (lib.rand, lib.randn, lib.zeros, lib.ones):
        assert make(2, 3, device="meta").shape == (2, 3)
    assert lib.arange(2, 10, 3, device="meta").shape == (3,)
    assert lib.full((2,), 1.5, device="meta").shape == (2,)
    assert lib.empty(3, device="meta").normal_().shape == (3,)


def test_an_operator_without_a_fake_says_so() -> None:
    with plugrad.library.Library("meta_without", "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.impl("f", lambda array: array, "CPU")
        with pytest.raises(
            OperatorNotFoundError, match="no fake is registered for 'meta_without::f'"
        ):
            plugrad.ops.meta_without.f(plugrad.empty(2, device="meta"))


def test_elementwise_operators_of_others_need_no_fake() -> None:
    entry = """
- func: plus(Tensor self, Tensor other) -> Tensor
  structure: binary
  result: float
  differentiable: false
  doc: A sum.
"""
    with plugrad.library.Library("meta_structured", "DEF") as own:
        plus = own.load(entry).plus
        made = plus(
            plugrad.empty(2, 1, device="meta"),
            plugrad.empty(3, device="meta", dtype=plugrad.int64),
        )
        assert made.shape == (2, 3)
        assert made.dtype is plugrad.float32


def test_nor_do_those_of_any_number_of_operands() -> None:
    entry = """
- func: blend(Tensor self, Tensor other, Tensor weight) -> Tensor
  structure: elementwise
  result: float
  differentiable: false
  doc: Something between two tensors.
"""
    with plugrad.library.Library("meta_elementwise", "DEF") as own:
        blend = own.load(entry).blend
        x = plugrad.empty(2, 1, device="meta")
        assert blend(x, x, plugrad.empty(3, device="meta")).shape == (2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda meta, number: meta + number,
        lambda meta, number: number.atan2(meta),
        lambda meta, number: meta.addcmul(number, meta),
        lambda meta, number: meta.where(meta > 0, number),
        lambda meta, number: meta.mul_(number),
        lambda meta, number: meta.bool().logical_or_(number),
        lambda meta, number: meta.masked_fill(number > 0, 2),
    ],
)
def test_numbers_on_the_host_meet_tensors_without_data(call: Any, torch_oracle: Any) -> None:
    ours, theirs = [
        call(lib.ones(2, 3, device="meta"), lib.ones(())) for lib in (plugrad, torch_oracle)
    ]
    assert (ours.shape, str(ours.device)) == (theirs.shape, "meta")
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
