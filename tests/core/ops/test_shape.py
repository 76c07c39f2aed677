"""Joining, repeating, reordering, converting: the shared suite, layouts, and other devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite, needs_torch, torch


class TestShape(OpSuite):
    cases = family_cases("shape")


class ParcelArray:
    """An array of another library, which NumPy must not compute with."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self.shape = content.shape
        self.dtype = content.dtype


class ParcelBackend(Backend):
    """A device with its own memory, to copy to and from."""

    def __init__(self) -> None:
        super().__init__("parcel", ParcelArray)

    def kernels(self) -> dict[str, Any]:
        def copy_(target: ParcelArray, source: ParcelArray) -> None:
            np.copyto(target.content, source.content, casting="unsafe")

        return {
            "copy_": copy_,
            "_to_copy": lambda a, dtype: ParcelArray(a.content.astype(dtype)),
            "clone": lambda a, keep: ParcelArray(a.content.copy()),
            "view": lambda a, size: ParcelArray(a.content.reshape(size)),
            "mul.Tensor": lambda a, b: ParcelArray(a.content * b.content),
            "index_select": lambda a, dim, i: ParcelArray(np.take(a.content, i.content, dim)),
            "where.self": lambda c, a, b: ParcelArray(np.where(c.content, a.content, b.content)),
        }

    def from_host(self, array: Any, index: int) -> ParcelArray:
        return ParcelArray(array.copy())

    def to_host(self, array: ParcelArray) -> Any:
        return array.content.copy()


@pytest.fixture
def parcel() -> Iterator[str]:
    activate_backend(ParcelBackend())
    yield "parcel"
    deactivate_backend("parcel")


def test_to_another_device_and_back(parcel: str) -> None:
    x = plugrad.arange(3.0, requires_grad=True)
    there = x.to(parcel)
    assert there.device.type == parcel
    assert there.grad_fn.name() == "ToCopyBackward0"
    assert there.to(parcel) is there
    back = there.to("cpu", plugrad.float64)
    assert back.tolist() == [0, 1, 2]
    (back * back).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]
    assert x.grad.device == x.device
    assert x.grad.dtype is plugrad.float32


def test_copy_crosses_devices_both_ways(parcel: str) -> None:
    here = plugrad.zeros(3)
    there = plugrad.arange(3.0, dtype=plugrad.float64).to(parcel)
    here.copy_(there)
    assert here.tolist() == [0, 1, 2]
    there.copy_(plugrad.tensor([5, 6, 7]))
    assert there.cpu().tolist() == [5, 6, 7]


def test_copy_gives_its_source_a_gradient_on_the_source_s_device(parcel: str) -> None:
    source = plugrad.ones(3).to(parcel).requires_grad_()
    target = plugrad.zeros(3) * 1
    target.copy_(source)
    target.backward(plugrad.arange(3.0))
    assert source.grad.device.type == parcel
    assert source.grad.cpu().tolist() == [0, 1, 2]


def test_cat_without_a_kernel_takes_every_element_as_it_is(parcel: str) -> None:
    parts = [plugrad.full((n, 2), float(n)).to(parcel) for n in (1, 2, 0, 3)]
    parts.append(plugrad.full((1, 2), -0.0).to(parcel))
    joined = plugrad.cat(parts).cpu()
    assert joined[:, 0].tolist() == [1, 2, 2, 3, 3, 3, 0]
    assert plugrad.signbit(joined[-1]).all()
    sides = plugrad.cat([plugrad.ones(2, 1).to(parcel), plugrad.zeros(2, 2).to(parcel)], 1)
    assert sides.cpu().tolist() == [[1, 0, 0], [1, 0, 0]]


@needs_torch
@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.permute(2, 0, 1),
        lambda x: x.transpose(1, 2),
        lambda x: x[:, :, ::2],
        lambda x: x[:1].expand(2, 3, 4),
    ],
)
@pytest.mark.parametrize("copy", [lambda x: x.clone(), lambda x: x.contiguous(), lambda x: x.int()])
def test_copies_are_laid_out_as_pytorch_does(layout: Any, copy: Any) -> None:
    ours = copy(layout(plugrad.arange(24).reshape(2, 3, 4)))
    theirs = copy(layout(torch.arange(24).reshape(2, 3, 4)))
    assert ours.stride() == theirs.stride()


def test_to_returns_the_tensor_itself_if_nothing_changes() -> None:
    x = plugrad.ones(2)
    assert x.to(plugrad.float32) is x
    assert x.to("cpu") is x
    assert x.float() is x
    assert x.contiguous() is x
    assert x.to(plugrad.float32, copy=True) is not x


def test_copy_broadcasts_casts_and_counts_the_write() -> None:
    x = plugrad.zeros(2, 3, dtype=plugrad.int32)
    version = x._version
    assert x.copy_(plugrad.tensor([1.9, -1.9, 3.0])) is x
    assert x.tolist() == [[1, -1, 3], [1, -1, 3]]
    assert x._version == version + 1
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast"):
        plugrad.ones(3).copy_(plugrad.ones(2, 3))
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        plugrad.ones(2, 3).copy_(plugrad.ones(4, 3))


def test_copy_gradients() -> None:
    old = plugrad.ones(2, 3, requires_grad=True)
    source = plugrad.ones(3, requires_grad=True)
    target = old * 1
    target.copy_(source)
    assert target.grad_fn.name() == "CopyBackwards"
    (target * 2).sum().backward()
    assert old.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert source.grad.tolist() == [4, 4, 4]


def test_a_real_source_of_a_complex_result_gets_a_real_gradient() -> None:
    x = plugrad.ones(2, requires_grad=True)
    (x.cfloat() * 1j).real.sum().backward()
    assert x.grad.dtype is plugrad.float32
    assert x.grad.tolist() == [0, 0]


def test_casting_what_does_not_fit_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    plugrad.tensor([float("nan"), 1e30]).int()
    plugrad.tensor([1 + 2j]).to(plugrad.float32)
    plugrad.zeros(1, dtype=plugrad.int64).copy_(plugrad.tensor([float("inf")]))
    assert not recwarn.list


def test_decompositions_match_the_kernels() -> None:
    from plugrad.ops.composite.shape import cat_in_pairs, diag_embed, repeat, stack

    x = plugrad.arange(6).reshape(2, 3)
    assert repeat(x, (2, 1, 3)).tolist() == x.repeat(2, 1, 3).tolist()
    assert stack([x, x], 1).tolist() == plugrad.stack([x, x], 1).tolist()
    assert cat_in_pairs([x, x], 1).tolist() == plugrad.cat([x, x], 1).tolist()
    assert diag_embed(x, 1, 0, -1).tolist() == plugrad.diag_embed(x, 1, 0, -1).tolist()
