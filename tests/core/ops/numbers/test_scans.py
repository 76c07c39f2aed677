"""Sums, products and extrema along a dimension. Oracle: PyTorch, bit for bit."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from plugrad_cpu.compiled import loops
from plugrad_cpu.numerics import scans

Array = np.ndarray[Any, Any]

INTEGERS: Final = ("uint8", "int16", "int32", "int64")
REALS: Final = ("float16", "bfloat16", "float32", "float64", "bool", *INTEGERS)
# Short and long lines, lines of one element and of none, and more columns than loops take at once.
SHAPES: Final = [(), (1,), (0,), (70,), (3, 4, 5), (2, 1100, 3), (5, 0, 2), (3, 2500)]


@pytest.fixture(params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    found = loops("scans") if request.param == "compiled" else None
    if request.param == "compiled" and found is None:
        pytest.skip("there is no numba")
    monkeypatch.setattr(scans, "loops_for", lambda name, count: found)
    return str(request.param)


def numbers(name: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Many equal ones, with zeros of both signs, a nan and infinities; products stay small."""
    generator = np.random.default_rng(0)
    array = np.asarray(np.round(generator.standard_normal(shape) * 3) / 2)
    if name == "cumprod":
        array = np.where(array == 0, 1, np.sign(array) * (1 + array / 1000))
    if array.size > 8 and dtype not in INTEGERS:
        flat = array.reshape(-1)
        flat[:2] = -0.0, 0.0
        if array.size % 2:
            flat[3], flat[-4:-2], flat[-2] = np.nan, np.inf, np.nan
    return array


def assert_same(found: Any, expected: Any, torch: Any) -> None:
    assert str(found.dtype).rpartition(".")[2] == str(expected.dtype).rpartition(".")[2]
    assert tuple(found.shape) == tuple(expected.shape)
    if expected.dtype is torch.bfloat16:
        found, expected = found.float(), expected.float()
    ours, theirs = found.numpy(), expected.numpy()
    np.testing.assert_array_equal(ours, theirs)
    if ours.dtype.kind == "f":
        kept = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours[kept]), np.signbit(theirs[kept]))


def compare(name: str, shape: tuple[int, ...], dtype: str, torch: Any) -> None:
    array = numbers(name, shape, dtype)
    ours = plugrad.tensor(array).to(getattr(plugrad, dtype))
    theirs = torch.tensor(array).to(getattr(torch, dtype))
    for dim, turned in itertools.product(range(-1, max(len(shape) - 1, 0)), (False, True)):
        results = []
        for x, lib in ((ours, plugrad), (theirs, torch)):
            x = x.transpose(0, -1) if turned and shape else x
            result = getattr(lib, name)(x, dim)
            results.append(result if isinstance(result, tuple) else (result,))
        for found, expected in zip(*results, strict=True):
            assert_same(found, expected, torch)


@pytest.mark.parametrize("dtype", [*REALS, "complex64", "complex128"])
@pytest.mark.usefixtures("way")
def test_sums_are_those_of_pytorch(dtype: str, torch_oracle: Any) -> None:
    for shape in SHAPES:
        compare("cumsum", shape, dtype, torch_oracle)


@pytest.mark.parametrize("dtype", [*REALS, "complex64"])
@pytest.mark.usefixtures("way")
def test_products_are_those_of_pytorch(dtype: str, torch_oracle: Any) -> None:
    for shape in SHAPES:
        compare("cumprod", shape, dtype, torch_oracle)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.usefixtures("way")
def test_extrema_are_those_of_pytorch(name: str, dtype: str, torch_oracle: Any) -> None:
    for shape in SHAPES:
        compare(name, shape, dtype, torch_oracle)


@pytest.mark.usefixtures("way")
def test_a_dtype_is_taken_before_anything_is_added(torch_oracle: Any) -> None:
    array = np.random.default_rng(0).standard_normal(50)
    for dtype in ("float32", "float16", "int64"):
        found = plugrad.cumsum(plugrad.tensor(array), 0, dtype=getattr(plugrad, dtype))
        given = torch_oracle.tensor(array)
        expected = torch_oracle.cumsum(given, 0, dtype=getattr(torch_oracle, dtype))
        assert_same(found, expected, torch_oracle)


def test_extrema_of_complex_numbers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="cummax_cpu"):
        plugrad.cummax(plugrad.ones(3, dtype=plugrad.complex64), 0)


def test_loops_give_the_bits_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without PyTorch: which of the two runs depends on what was loaded before."""
    found = loops("scans")
    if found is None:
        pytest.skip("there is no numba")
    results = []
    for used in (found, None):
        monkeypatch.setattr(scans, "loops_for", lambda name, count, used=used: used)
        for name, shape in itertools.product(("cumsum", "cumprod", "cummax"), SHAPES):
            for dtype in ("float32", "float64", "int64"):
                x = plugrad.tensor(numbers(name, shape, dtype)).to(getattr(plugrad, dtype))
                made = getattr(plugrad, name)(x, 0)
                parts = made if isinstance(made, tuple) else (made,)
                results.append([part.numpy().tobytes() for part in parts])
    half = len(results) // 2
    assert results[:half] == results[half:]


def test_the_gradient_of_sums_of_one_element_each_is_the_gradient_itself() -> None:
    x = plugrad.ones(1, 3, requires_grad=True)
    y = x.cumsum(0)
    of_y, of_x = plugrad.autograd.grad([y], [y, x], [plugrad.ones(1, 3)])
    # As in PyTorch, so a write to one is a write to the other.
    of_y.mul_(2)
    assert of_x.tolist() == [[2.0, 2.0, 2.0]]
