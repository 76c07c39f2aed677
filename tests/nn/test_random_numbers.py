"""A seed gives PyTorch's weights, orders and splits; the new initialisers and samplers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad
from plugrad.nn import init
from plugrad.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)

PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    "layers": lambda lib: [
        parameter.tolist()
        for layer in (
            lib.nn.Linear(7, 5),
            lib.nn.Conv2d(3, 4, 3),
            lib.nn.Embedding(10, 3, padding_idx=2),
        )
        for parameter in layer.parameters()
    ],
    "initialisers": lambda lib: [
        fill(lib.nn.init, lib.empty(9, 5, dtype=lib.float64)).tolist()
        for fill in (
            lambda i, w: i.xavier_uniform_(w),
            lambda i, w: i.xavier_normal_(w, 2.0),
            lambda i, w: i.kaiming_uniform_(w),
            lambda i, w: i.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
            lambda i, w: i.sparse_(w, 0.3),
            lambda i, w: i.trunc_normal_(w, std=0.02),
            lambda i, w: i.trunc_normal_(w, 0.0, 1.0, -1.0, 1.0),
            lambda i, w: i.trunc_normal_(w, 5.0, 1.0, 0.0, 1.0),
        )
    ],
    "loader": lambda lib: [
        [batch.tolist() for batch in loader]
        for loader in [lib.utils.data.DataLoader(list(range(23)), 4, shuffle=True)] * 2
    ],
    "samplers": lambda lib: [
        list(sampler)
        for sampler in (
            lib.utils.data.RandomSampler(range(9), num_samples=18),
            lib.utils.data.RandomSampler(range(9), True, 70),
            lib.utils.data.RandomSampler(range(9), generator=lib.Generator().manual_seed(4)),
            lib.utils.data.SubsetRandomSampler([5, 6, 9, 2]),
            lib.utils.data.WeightedRandomSampler([0.1, 0.2, 0.7], 9),
            lib.utils.data.WeightedRandomSampler([0.1, 0.2, 0.7], 2, False),
        )
    ],
    "splits": lambda lib: [
        list(part.indices) for part in lib.utils.data.random_split(range(31), [0.3, 0.3, 0.4])
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_seed_gives_what_it_gives_in_pytorch(name: str, torch_oracle: Any) -> None:
    found = []
    for lib in (plugrad, torch_oracle):
        lib.manual_seed(77)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found.append((PROGRAMS[name](lib), lib.get_rng_state().tolist()))
    assert found[0] == found[1]


def test_a_seed_gives_an_order() -> None:
    """PyTorch's, written down."""
    shuffled = [[1, 4], [2, 3], [0]]
    plugrad.manual_seed(0)
    assert list(RandomSampler(range(6))) == [0, 1, 2, 3, 5, 4]
    plugrad.manual_seed(0)
    assert [batch.tolist() for batch in DataLoader(list(range(5)), 2, shuffle=True)] == shuffled
    plugrad.manual_seed(0)
    assert random_split(range(6), [2, 4])[0].indices == [2, 5]


def test_orthogonal_rows_or_columns() -> None:
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        w = init.orthogonal_(plugrad.empty(shape, dtype=plugrad.float64), gain=2.0)
        flat = w.reshape(shape[0], -1)
        small = flat @ flat.t() if flat.shape[0] <= flat.shape[1] else flat.t() @ flat
        assert plugrad.allclose(small, 4 * plugrad.eye(len(small), dtype=plugrad.float64))
    with pytest.raises(ValueError, match="Only tensors with 2 or more dimensions"):
        init.orthogonal_(plugrad.empty(3))


def test_dirac_passes_channels_on() -> None:
    x = plugrad.rand(2, 4, 5, 5)
    w = init.dirac_(plugrad.empty(4, 2, 3, 3), groups=2)
    assert plugrad.equal(plugrad.nn.functional.conv2d(x, w, padding=1, groups=2), x)
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(plugrad.empty(4, 2, 3), groups=3)
    with pytest.raises(ValueError, match="3, 4, or 5 dimensions"):
        init.dirac_(plugrad.empty(4, 2))


def test_sparse_columns() -> None:
    w = init.sparse_(plugrad.empty(10, 4), 0.25)
    assert (w == 0).sum(0).tolist() == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.sparse_(plugrad.empty(3), 0.1)


def test_samplers_of_subsets_and_weights() -> None:
    subset = SubsetRandomSampler([5, 6, 9])
    assert sorted(subset) == [5, 6, 9]
    assert len(subset) == 3
    weighted = WeightedRandomSampler([0.0, 1.0, 0.0], 4)
    assert list(weighted) == [1, 1, 1, 1]
    assert len(weighted) == 4
    with pytest.raises(ValueError, match="weights should be a 1d sequence"):
        WeightedRandomSampler([[1.0]], 1)
    for wrong in (0, True):
        with pytest.raises(ValueError, match="num_samples should be a positive integer value"):
            WeightedRandomSampler([1.0], wrong)
