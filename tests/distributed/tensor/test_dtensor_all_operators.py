"""Every operator that has samples gives on DTensors what it gives on whole tensors, and so do its
gradients. The oracle is the same call on one process."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import Tensor
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from plugrad.testing.cases import (
    FAMILIES,
    Arguments,
    OpCase,
    OpSample,
    family_cases,
    flatten,
    resolve,
    seed_of,
)

# The placements of a call's tensors: by their number, their dimensions, and whether they are
# floats.
WAYS: dict[str, Any] = {
    "first": lambda number, ndim, floats: Shard(0),
    "summand": lambda number, ndim, floats: Partial() if floats else Replicate(),
    "last": lambda number, ndim, floats: Shard(ndim - 1),
    "first of first": lambda number, ndim, floats: Replicate() if number else Shard(0),
    "different": lambda number, ndim, floats: Shard(number % ndim),
    "first of others": lambda number, ndim, floats: Shard(0) if number else Replicate(),
    "nowhere": lambda number, ndim, floats: Replicate(),
}


class _Plain(Arguments):
    """Arguments without gaps in memory, as DTensors have them."""

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        return super().tensor_of(values, "contiguous")


class _OnMesh(_Plain):
    """The same on a mesh."""

    def __init__(self, seed: int, way: str) -> None:
        super().__init__("float64", seed)
        self.way = WAYS[way]
        self.mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        self.number = 0

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        whole = super().tensor_of(values, layout)
        floats = whole.is_floating_point()
        placement = self.way(self.number, whole.ndim, floats) if whole.ndim else Replicate()
        self.number += 1
        if isinstance(placement, Partial):
            return DTensor.from_local(whole / self.mesh.size(), self.mesh, [placement]).detach()
        return distribute_tensor(whole, self.mesh, [placement], src_data_rank=None)


def _whole(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    whole: Any = value.detach()
    return whole.full_tensor() if isinstance(whole, DTensor) else whole


def _results(case: OpCase, sample: OpSample, given: Arguments) -> list[Any]:
    """What a call gives, then the gradients of the sum of the squares."""
    out = flatten(resolve(case.op)(*given.make(sample.args), **given.make(sample.kwargs)))
    total: Any = 0.0
    for one in out:
        if isinstance(one, Tensor) and one.requires_grad:
            total = total + (one.abs() ** 2 if one.is_complex() else one * one).sum()
    if case.gradient and isinstance(total, Tensor):
        out += plugrad.autograd.grad(total, given.leaves, allow_unused=True)
    return [_whole(one) for one in out]


def _difference(found: Any, expected: Any) -> str:
    if not isinstance(expected, Tensor):
        compared = isinstance(expected, (int, float, complex, str)) and expected == expected
        return f"{found!r} instead of {expected!r}" if compared and found != expected else ""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    ours, theirs = (one.resolve_conj().resolve_neg().numpy() for one in (found, expected))
    if np.allclose(ours, theirs, rtol=1e-7, atol=1e-9, equal_nan=True):
        return ""
    return f"{ours.reshape(-1)[:5]} instead of {theirs.reshape(-1)[:5]}"


def _check(trials: list[tuple[OpCase, OpSample, str]]) -> None:
    """Compare calls, all of them in one start of the ranks."""
    expected = [
        _results(case, sample, _Plain("float64", seed_of(case, sample)))
        for case, sample, _ in trials
    ]

    def run() -> list[str]:
        wrong: list[str] = []
        for (case, sample, way), wanted in zip(trials, expected, strict=True):
            try:
                found = _results(case, sample, _OnMesh(seed_of(case, sample), way))
                assert len(found) == len(wanted)
                differences = list(map(_difference, found, wanted))
            except Exception as error:
                differences = [f"{type(error).__name__}: {error}"]
            wrong += [f"{case.op} {sample} {way}: {one}" for one in differences if one]
        return wrong

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what has no rule gathers
        for wrong in dist.run_ranks(run, 2, timeout=20):
            assert not wrong, "\n".join(wrong[:5])


def _samples(family: str) -> list[tuple[OpCase, OpSample]]:
    return [(case, sample) for case in family_cases(family) for sample in case.all_samples()]


@pytest.mark.parametrize("family", FAMILIES)
def test_some_samples_of_every_operator_are_one_process_s(family: str) -> None:
    names = list(WAYS)
    chosen = [(case, sample) for case in family_cases(family) for sample in case.all_samples()[::4]]
    _check([(*one, names[number % len(names)]) for number, one in enumerate(chosen)])


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_samples_are_one_process_s(family: str, way: str) -> None:
    # A sum over ranks need not keep the sign of a zero.
    left_out = ("signbit",) if way == "summand" else ()
    _check([(*one, way) for one in _samples(family) if one[0].op not in left_out])
