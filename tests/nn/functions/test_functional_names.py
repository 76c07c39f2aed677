"""Functions that PyTorch programs find in `nn.functional` beside the layers'. Oracle: PyTorch."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.nn import functional as F


def tensors(lib: Any, *shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(0)
    return [lib.tensor(generator.normal(size=shape).astype(np.float32)) for shape in shapes]


def assert_same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_rrelu_in_place_and_signals_with_time_first(torch_oracle: ModuleType) -> None:
    for lib, functional in ((plugrad, F), (torch_oracle, torch_oracle.nn.functional)):
        x, weight, bias = tensors(lib, (5, 2, 3), (2, 3, 4), (4,))
        found = functional.conv_tbc(x, weight, bias, pad=1)
        assert functional.rrelu_(x, 0.25, 0.75) is x
        if lib is plugrad:
            ours = found, x
    assert_same(ours[0], found)
    assert_same(ours[1], x)


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d"])
@pytest.mark.parametrize("options", [(), (2, 1), (1, 2, 2), (1, 0, 1, 2)])
def test_gradients_of_convolutions(torch_oracle: ModuleType, name: str, options: Any) -> None:
    dims = int(name[-2])
    groups = options[3] if len(options) == 4 else 1
    x, weight = tensors(plugrad, (2, 4) + (6,) * dims, (2, 4 // groups) + (3,) * dims)
    grad = plugrad.ones_like(getattr(F, name)(x, weight, None, *options))
    theirs = [torch_oracle.from_numpy(item.numpy()) for item in (x, weight, grad)]
    for kind, shaped in (("input", 0), ("weight", 1)):
        given = [x, weight, grad]
        given[shaped] = tuple(given[shaped].shape)
        found = getattr(F.grad, f"{name}_{kind}")(*given, *options)
        given = list(theirs)
        given[shaped] = tuple(given[shaped].shape)
        assert_same(found, getattr(torch_oracle.nn.grad, f"{name}_{kind}")(*given, *options))


@pytest.mark.parametrize(
    ("a", "b", "ends"),
    [
        ((8, 4), (2, 4, 8), (2, 8)),
        ((8, 4), (2, 4, 8), (8, 8)),
        ((2, 8, 4), (4, 8), (4, 8)),
        ((4, 8), (8, 4), (4, 8)),
        ((2, 8, 4), (2, 4, 8), None),
    ],
)
def test_products_in_groups(torch_oracle: ModuleType, a: Any, b: Any, ends: Any) -> None:
    results = []
    for lib in (plugrad, torch_oracle):
        offs = None if ends is None else lib.tensor(ends, dtype=lib.int32)
        functional = F if lib is plugrad else lib.nn.functional
        results.append(functional.grouped_mm(*tensors(lib, a, b), offs=offs))
    assert_same(*results)


def test_rows_behind_the_last_group_are_zero_and_offsets_are_checked() -> None:
    a, b = tensors(plugrad, (6, 4), (2, 4, 8))
    offs = plugrad.tensor([2, 4], dtype=plugrad.int32)
    found = F.grouped_mm(a, b, offs=offs)
    assert found.shape == (6, 8)
    assert not found[4:].any()
    with pytest.raises(RuntimeError, match="Have to provide offsets if there is a 2d matrix"):
        F.grouped_mm(a, b)
    with pytest.raises(RuntimeError, match="Offsets have to be int32"):
        F.grouped_mm(a, b, offs=offs.long())
    with pytest.raises(RuntimeError, match="matrix batch sizes have to match"):
        F.grouped_mm(a, b, offs=offs[:1])


def test_the_functions_do_not_load_their_operators_with_the_module() -> None:
    program = (
        "import sys, plugrad.nn.functional;"
        "assert 'plugrad._generated.shrinkage' not in sys.modules;"
        "assert 'plugrad._generated.sequence_layers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
