"""Autocast where a graph is run: in backward, on the threads of devices, and in checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd import Function
from plugrad.autograd.checkpoint import checkpoint
from tests.core.backends.conftest import activated
from tests.core.backends.workers import WorkersBackend


@pytest.fixture(scope="module")
def workers() -> Iterator[str]:
    backend = WorkersBackend("castworkers")
    with activated(backend) as name:
        yield name
    backend.close()


class Looks(Function):
    """The identity; its backward notes on which thread it ran, and what autocast did there."""

    seen: list[Any] = []  # noqa: RUF012

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.device_type = x.device.type
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        name = ctx.device_type
        state = plugrad.is_autocast_enabled(name), plugrad.get_autocast_dtype(name)
        product = (plugrad.ones(2, 2, device=name) @ plugrad.ones(2, 2, device=name)).dtype
        Looks.seen.append((threading.get_ident(), *state, product))
        return grad


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    Looks.seen.clear()


def test_backward_autocasts_as_its_caller_does() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.autocast("cpu"):
        out = Looks.apply(x)
    out.sum().backward()
    with plugrad.autocast("cpu", plugrad.float16):
        Looks.apply(x).sum().backward()
    assert [seen[1:] for seen in Looks.seen] == [
        (False, plugrad.bfloat16, plugrad.float32),
        (True, plugrad.float16, plugrad.float16),
    ]


def test_the_threads_of_devices_autocast_as_the_caller_does(workers: str) -> None:
    x = plugrad.ones(2, requires_grad=True, device=workers)
    with plugrad.autocast(workers, plugrad.float16):
        Looks.apply(x).sum().backward()
    Looks.apply(x).sum().backward()
    (thread, *state), (_, *after) = Looks.seen
    assert thread != threading.get_ident()
    assert state == [True, plugrad.float16, plugrad.float16]
    assert after == [False, plugrad.bfloat16, plugrad.float32]


def test_other_backends_have_the_lists_of_cuda(workers: str) -> None:
    x = plugrad.ones(2, 2, device=workers)
    with plugrad.autocast(workers):
        assert (x @ x).dtype is plugrad.bfloat16
        assert (x @ x).exp().dtype is plugrad.float32
        assert (x @ x).sum().dtype is plugrad.float32
        assert (x @ x).sum(dtype=plugrad.float16).dtype is plugrad.float16
        assert (x @ x).norm().dtype is plugrad.float32
        assert plugrad.einsum("ij,jk", x, x).dtype is plugrad.bfloat16
        with pytest.raises(RuntimeError, match="are unsafe to autocast"):
            plugrad.nn.functional.binary_cross_entropy(x, x)
        # These are the CPU's, for which nothing was said.
        assert (plugrad.ones(2, 2) @ plugrad.ones(2, 2)).dtype is plugrad.float32


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_are_recomputed_as_they_were_computed(use_reentrant: bool) -> None:
    weight = plugrad.rand(3, 3, requires_grad=True)
    x = plugrad.rand(2, 3, requires_grad=True)
    dtypes: list[Any] = []

    def layer(x: Any) -> Any:
        out = x @ weight
        dtypes.append(out.dtype)
        return out.sin()

    with plugrad.autocast("cpu"):
        layer(x).float().sum().backward()
    expected, weight.grad = weight.grad, None
    with plugrad.autocast("cpu"):
        out = checkpoint(layer, x, use_reentrant=use_reentrant)
    out.float().sum().backward()
    assert dtypes == [plugrad.bfloat16] * 3
    assert plugrad.equal(weight.grad, expected)
    assert not plugrad.is_autocast_enabled("cpu")


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_from_outside_is_recomputed_without_autocast(use_reentrant: bool) -> None:
    x = plugrad.rand(2, 2, requires_grad=True)
    dtypes: list[Any] = []

    def layer(x: Any) -> Any:
        out = x @ x
        dtypes.append(out.dtype)
        return out.sin()

    out = checkpoint(layer, x, use_reentrant=use_reentrant)
    with plugrad.autocast("cpu"):
        out.sum().backward()
        assert plugrad.is_autocast_enabled("cpu")
    assert dtypes == [plugrad.float32, plugrad.float32]
