"""On backends that have the primitives only: other dtypes and layouts, refusals, views, seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import (
    Arguments,
    OpCase,
    OpError,
    family_cases,
    resolve,
    seed_of,
)
from tests.core.ops.decompositions.bare_backend import bare_backend
from tests.core.ops.decompositions.test_bare_backends import assert_equal_outcomes, outcome

FAMILIES = ("indexing", "linalg", "linear_systems", "nn", "shape", "views")
CASES = [case for family in FAMILIES for case in family_cases(family)]
ERRORS = [(case, error) for case in CASES for error in case.errors]
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    with bare_backend("full") as name:
        yield name


class LaidOut(Arguments):
    """Arguments with the memory layouts of their descriptions on a device."""

    def __init__(self, device: str, dtype: str, seed: int) -> None:
        super().__init__(dtype, seed)
        self.device = device

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        def there(array: np.ndarray[Any, Any]) -> Any:
            return plugrad.from_numpy(np.array(array, order="C")).to(self.device)

        if values.size == 0 or values.ndim == 0:
            return there(values)
        if layout == "transposed" and values.ndim > 1:
            return there(values.swapaxes(-1, -2)).transpose(-1, -2).detach()
        if layout == "expanded":
            return there(values[:1]).expand(values.shape).detach()
        if layout == "sliced":
            return there(np.repeat(values, 2, -1))[..., ::2].detach()
        return there(values)


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "float16"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_other_dtypes_give_what_the_cpu_gives(case: OpCase, dtype: str, bare: str) -> None:
    if dtype not in case.dtypes:
        return
    for number, sample in enumerate(case.all_samples()):
        try:
            expected = outcome(case, sample, dtype, "cpu")
        except REFUSALS:
            continue
        found = outcome(case, sample, dtype, bare)
        assert_equal_outcomes(found, expected, f"{case.op} sample {sample.name or number}")


@pytest.mark.parametrize(
    ("case", "error"), ERRORS, ids=[f"{case.op}-{i}" for i, (case, _) in enumerate(ERRORS)]
)
def test_refusals_are_those_of_the_cpu(case: OpCase, error: OpError, bare: str) -> None:
    arguments = LaidOut(bare, "float64", seed_of(case, error.sample))
    args = arguments.make(error.sample.args)
    kwargs = arguments.make(error.sample.kwargs)
    with pytest.raises(error.exception, match=error.regex):
        resolve(case.op)(*args, **kwargs)


STRIDED = [case for case in CASES if "strides='" in repr([s.args for s in case.all_samples()])]


@pytest.mark.parametrize("case", STRIDED, ids=lambda case: case.op)
def test_layouts_make_no_difference(case: OpCase, bare: str) -> None:
    def run(device: str, sample: Any) -> list[Any]:
        arguments = LaidOut(device, "float64", seed_of(case, sample))
        result = resolve(case.op)(*arguments.make(sample.args), **arguments.make(sample.kwargs))
        return list(result) if isinstance(result, (tuple, list)) else [result]

    for sample in case.all_samples():
        try:
            expected = run("cpu", sample)
        except REFUSALS:
            continue
        assert_equal_outcomes(run(bare, sample), expected, case.op)


def test_a_diagonal_shares_memory(bare: str) -> None:
    for make in (
        lambda x: x.diagonal(),
        lambda x: x.diagonal(1),
        lambda x: x.diagonal(-1),
        lambda x: x.t().diagonal(1),
        lambda x: x[:, ::2].diagonal(),
        lambda x: x.view(2, 2, 3).diagonal(0, 0, 2),
    ):
        here = plugrad.zeros(4, 3)
        there = plugrad.zeros(4, 3, device=bare)
        make(here).fill_(1)
        make(there).fill_(1)
        assert there.tolist() == here.tolist()
        assert make(there)._is_view()


def test_of_several_writes_to_one_place_the_last_stays(bare: str) -> None:
    x = plugrad.zeros(3, device=bare)
    index = plugrad.tensor([1, 1, 1], device=bare)
    x[index] = plugrad.tensor([5.0, 6.0, 7.0], device=bare)
    assert x.tolist() == [0, 7, 0]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 100])
def test_additions_to_one_place_count_all(count: int, bare: str) -> None:
    rng = np.random.default_rng(count)
    index = rng.integers(0, 3, count)
    values = rng.standard_normal(count)
    expected = np.zeros(4)
    np.add.at(expected, index, values)
    found = plugrad.zeros(4, dtype=plugrad.float64, device=bare).index_add(
        0, plugrad.tensor(index, device=bare), plugrad.tensor(values, device=bare)
    )
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-12)


def test_additions_of_infinities_stay_where_they_belong(bare: str) -> None:
    index = plugrad.tensor([0, 0, 2], device=bare)
    values = plugrad.tensor([float("inf"), 1.0, float("nan")], device=bare)
    found = plugrad.zeros(4, device=bare).index_add(0, index, values).tolist()
    assert found[:2] == [float("inf"), 0.0]
    assert np.isnan(found[2])
    assert found[3] == 0.0


def test_batch_norm_moves_the_running_statistics(bare: str) -> None:
    def run(device: str) -> list[Any]:
        x = plugrad.arange(24.0).reshape(4, 2, 3).to(device).requires_grad_()
        mean, var = plugrad.zeros(2, device=device), plugrad.ones(2, device=device)
        out = plugrad.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, True)
        (out * out * out).sum().backward()
        return [out.detach(), mean, var, x.grad]

    for found, expected in zip(run(bare), run("cpu"), strict=True):
        plugrad.testing.assert_close(found.cpu(), expected)


def test_dropout_draws_as_the_cpu_does(bare: str) -> None:
    plugrad.manual_seed(3)
    expected = plugrad.dropout(plugrad.ones(20), 0.4, True)
    plugrad.manual_seed(3)
    found = plugrad.dropout(plugrad.ones(20, device=bare), 0.4, True)
    assert found.tolist() == expected.tolist()
    assert plugrad.dropout(plugrad.ones(3, device=bare), 1.0, True).tolist() == [0, 0, 0]


def test_windows_with_nan_have_it_as_maximum(bare: str) -> None:
    x = plugrad.ones(1, 1, 4, 4)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = float("nan")
    found = plugrad.max_pool2d_with_indices(x.to(bare), (2, 2), (1, 1))
    expected = plugrad.max_pool2d_with_indices(x, (2, 2), (1, 1))
    np.testing.assert_array_equal(found[0].cpu().numpy(), expected[0].numpy())
    assert found[1].tolist() == expected[1].tolist()


def test_a_small_network_of_convolutions_learns(bare: str) -> None:
    from plugrad import nn, optim

    plugrad.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2)
    ).to(bare)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    images = plugrad.randn(8, 1, 4, 4)
    labels = (images.sum((1, 2, 3)) > 0).long().to(bare)
    images = images.to(bare)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
