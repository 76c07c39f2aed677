"""`use_deterministic_algorithms` on plugrad-cuda: the same bits, whatever order atomics come in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrad
from plugrad.plugins import package_kernels
from plugrad_cuda.fused import kernels
from plugrad_cuda.kernels import array_kernels
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.host_namespace import HostNamespace

CPU = package_kernels("plugrad_cpu.kernels")
COUNT = 300


class Shuffled(HostNamespace):
    """Adds in another order each time, as threads do."""

    turn = 0

    def scatter_add(self, target: Any, where: Any, values: Any) -> None:
        Shuffled.turn += 1
        places = np.arange(target.size).reshape(target.shape)[where]
        order = np.random.default_rng(Shuffled.turn).permutation(places.size)
        flat = np.ascontiguousarray(target).reshape(-1)
        sources = np.broadcast_to(values, places.shape).reshape(-1)
        super().scatter_add(flat, (places.reshape(-1)[order],), sources[order])
        target[...] = flat.reshape(target.shape)


OURS = array_kernels(Shuffled())


@pytest.fixture
def deterministic() -> Iterator[None]:
    plugrad.use_deterministic_algorithms(True)
    yield
    plugrad.use_deterministic_algorithms(False)


def added(dtype: Any) -> Any:
    """Into columns of a matrix that is no contiguous one, one of them without anything."""
    rng = np.random.default_rng(0)
    target = np.zeros((7, 2), dtype).T
    index = rng.integers(0, 6, COUNT)
    OURS["index_add_"](target, 1, index, rng.normal(size=(2, COUNT)).astype(dtype), 1)
    return target


def test_atomics_add_in_any_order() -> None:
    assert (added(np.float32) != added(np.float32)).any()


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_sums_are_the_same_in_every_run(dtype: Any) -> None:
    first = added(dtype)
    np.testing.assert_array_equal(first, added(dtype))
    plugrad.use_deterministic_algorithms(False)
    tolerance = 0.1 if np.dtype(dtype).itemsize == 2 else 1e-4
    wide = np.result_type(dtype, np.float32) if dtype is np.complex64 else np.float32
    np.testing.assert_allclose(first.astype(wide), added(dtype).astype(wide), atol=tolerance)


@pytest.mark.usefixtures("deterministic")
def test_every_way_of_adding() -> None:
    x, index = np.arange(12.0).reshape(3, 4), np.array([[0, 2, 2, 0]])
    values = np.array([[1.0, 2.0, 4.0, 8.0]])
    for name, args in {
        "scatter_add": (x, 0, index, values),
        "index_put": (x, [None, index[0]], values, True),
        "embedding_dense_backward": (values.T, index[0], 3, -1, True),
    }.items():
        np.testing.assert_array_equal(OURS[name](*args), CPU[name](*args))


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int64, np.bool_])
def test_the_last_of_several_writes_wins(dtype: Any) -> None:
    x, index = np.zeros((3, 4), dtype).T, np.array([0, 2, 2, 0, 1, 2])
    values = np.arange(18).reshape(6, 3).astype(dtype)
    for name, args in {
        "index_put": (x, [index - 4], values, False),
        "index_copy": (x, 0, index, values),
        "scatter.src": (x, 0, index[:, None].repeat(3, 1), values),
        "scatter.value": (x, 0, index[:, None], 1),
    }.items():
        np.testing.assert_array_equal(OURS[name](*args), CPU[name](*args))


@pytest.mark.usefixtures("deterministic")
def test_the_fused_gradient_of_an_embedding_gives_way(emulation: Emulation) -> None:
    fused = kernels(OURS, emulation)["embedding_dense_backward"]
    before = emulation.launched.total()
    grad, index = np.ones((4, 2), np.float32), np.array([0, 2, 2, 0])
    np.testing.assert_array_equal(fused(grad, index, 3, -1, False), [[2, 2], [0, 0], [2, 2]])
    assert emulation.launched.total() == before
