"""Loaders with worker processes beside JAX; a forked worker lacks JAX's threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad

pytest.importorskip("plugrad_nn", reason="plugrad-nn is not installed")

from plugrad.utils.data import DataLoader, Dataset


class Ramps(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return plugrad.full((2000,), float(index)), index

    def __len__(self) -> int:
        return 6


class OnDevice(Ramps):
    """Its tensors are JAX's."""

    def __init__(self) -> None:
        self.rows = plugrad.arange(6.0, device="jax")

    def __getitem__(self, index: int) -> Any:
        return self.rows[index] * 2


@pytest.fixture(autouse=True)
def jax_is_at_work() -> Iterator[None]:
    assert float(plugrad.ones(3, device="jax").sum()) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # JAX warns of forks
        yield


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_arrive_on_the_default_device(method: str) -> None:
    with plugrad.device("jax"):
        loader = DataLoader(Ramps(), 2, num_workers=2, multiprocessing_context=method)
        for ramps, index in loader:
            assert (ramps.device.type, index.device.type) == ("jax", "jax")
            assert plugrad.equal(ramps[:, 7], index.to(ramps.dtype))


def test_batches_that_are_kept_are_not_overwritten() -> None:
    with plugrad.device("jax"):
        loader = DataLoader(Ramps(), 1, num_workers=1, persistent_workers=True)
        kept = [ramp for _ in range(3) for ramp, _ in loader]
    assert [ramp[0, 0].item() for ramp in kept] == [0, 1, 2, 3, 4, 5] * 3


def test_a_forked_worker_says_that_it_cannot_use_jax() -> None:
    loader = DataLoader(OnDevice(), 2, num_workers=1, multiprocessing_context="fork", timeout=60)
    with pytest.raises(RuntimeError, match=r"forked cannot use .*'jax': pass multi"):
        list(loader)
    # It is the worker that has left JAX.
    assert float(plugrad.ones(3, device="jax").sum()) == 3


def test_a_spawned_worker_can_use_jax() -> None:
    loader = DataLoader(OnDevice(), 2, num_workers=1, multiprocessing_context="spawn")
    with plugrad.device("jax"):
        found = [batch.tolist() for batch in loader]
    assert found == [[0, 2], [4, 6], [8, 10]]
