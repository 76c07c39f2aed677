"""embedding and its gradient are the CPU's; indices out of range are seen."""

from __future__ import annotations

import numpy as np
import pytest

from plugrad_cuda.fused import kernels
from tests.cuda.emulation.runtime import Emulation, EmulationError
from tests.cuda.fused.against_cpu import DTYPES, check, indices, random

SHAPES = [(), (1,), (7,), (3, 4), (0,), (2, 300)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 5, 64])
def test_values_and_gradients(emulation: Emulation, shape: tuple[int, ...], width: int) -> None:
    rows = indices(shape, 9)
    rows = np.asarray(rows)
    out = check(emulation, "embedding", random((9, width)), rows)
    for padding in (-1, 0, 4):
        for by_frequency in (False, True):
            args = (random(out.shape, seed=1), rows, 9, padding, by_frequency)
            check(emulation, "embedding_dense_backward", *args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by_frequency", [False, True])
def test_gradient_dtypes(emulation: Emulation, dtype: str, by_frequency: bool) -> None:
    grad, rows = random((40, 3), dtype), indices((40,), 4)
    check(emulation, "embedding_dense_backward", grad, rows, 5, 1, by_frequency)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "complex64", "complex128", "float16"]
)
def test_table_of_any_dtype(emulation: Emulation, dtype: str) -> None:
    table = np.arange(12).reshape(4, 3).astype(dtype)
    found = kernels({}, emulation)["embedding"](table, np.array([[3, 0], [1, 3]]))
    np.testing.assert_array_equal(found, table[[[3, 0], [1, 3]]])


def test_gradient_by_indices_of_32_bits(emulation: Emulation) -> None:
    rows = indices((7,), 4).astype(np.int32)
    check(emulation, "embedding_dense_backward", random((7, 3)), rows, 5, 1, False)


def test_any_strides(emulation: Emulation) -> None:
    rows = indices((4, 6), 5).T[::2]
    check(emulation, "embedding", random((3, 5)).T, rows)
    check(emulation, "embedding_dense_backward", random((2, 4, 3)).T, rows, 5, -1, False)


@pytest.mark.parametrize("bad", [-1, 4])
def test_index_out_of_range(emulation: Emulation, bad: int) -> None:
    args = (random((4, 3)), np.array([0, bad]))
    with pytest.raises(EmulationError, match="trap"):
        kernels({}, emulation)["embedding"](*args)
    with pytest.raises(IndexError, match="index out of range in self"):
        kernels({}, Emulation(check=True))["embedding"](*args)
