"""make_tensor: shapes, dtypes, ranges and layouts of random tensors for tests."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        oracle: ModuleType = request.getfixturevalue("torch_oracle")
        return oracle
    return plugrad


DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("name", [*DTYPES, *INTEGERS])
def test_shape_and_dtype(lib: Any, name: str) -> None:
    dtype = getattr(lib, name)
    for made in (
        lib.testing.make_tensor(2, 3, dtype=dtype, device="cpu"),
        lib.testing.make_tensor((2, 3), dtype=dtype, device="cpu"),
    ):
        assert made.dtype is dtype
        assert made.shape == (2, 3)
    assert lib.testing.make_tensor((), dtype=dtype, device="cpu").shape == ()


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
def test_range(lib: Any, name: str) -> None:
    made = lib.testing.make_tensor(
        1000, dtype=getattr(lib, name), device="cpu", low=2, high=5, exclude_zero=True
    )
    assert made.min() >= 2
    assert made.max() < 5 or name.startswith("float")
    assert made.max() <= 5
    wide = lib.testing.make_tensor(1000, dtype=getattr(lib, name), device="cpu")
    assert wide.min() < 0
    assert wide.min() >= -9
    assert wide.max() <= 9


def test_layout_and_gradient(lib: Any) -> None:
    made = lib.testing.make_tensor(
        3, 4, dtype=lib.float64, device="cpu", noncontiguous=True, requires_grad=True
    )
    assert not made.is_contiguous()
    assert made.requires_grad
    assert made.is_leaf


def test_zeros_are_left_out(lib: Any) -> None:
    made = lib.testing.make_tensor(
        200, dtype=lib.int64, device="cpu", low=0, high=2, exclude_zero=True
    )
    assert bool((made != 0).all())


def test_an_empty_range_is_refused(lib: Any) -> None:
    with pytest.raises(ValueError, match="must be less than"):
        lib.testing.make_tensor(2, dtype=lib.float32, device="cpu", low=3, high=1)
