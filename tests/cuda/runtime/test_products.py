"""Calls of cuBLAS while a graph is captured: a fake on the host computes them and reads the memory
as cuBLAS would."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrad_cuda import cublas
from tests.core.drawing import drawn

NUMBERS = {2: "float16", 0: "float32", 1: "float64", 4: "complex64", 5: "complex128"}


def address(value: Any) -> int:
    return value.value if isinstance(value, ctypes.c_void_p) else int(value)


def read(pointer: Any, dtype: str, rows: int, columns: int, leading: int, step: Any, count: int):
    """`count` column-major matrices."""
    assert leading >= max(1, rows)
    step = int(getattr(step, "value", step))
    size = np.dtype(dtype).itemsize
    last = (count - 1) * step + (columns - 1) * leading + rows
    memory = np.frombuffer((ctypes.c_byte * (last * size)).from_address(address(pointer)), dtype)
    strides = (step * size, size, leading * size)
    return np.lib.stride_tricks.as_strided(memory, (count, rows, columns), strides)


class StandIn:
    """The one function of cuBLAS, as its documentation has it."""

    # fmt: off
    def cublasGemmStridedBatchedEx(
        self, handle, opa, opb, m, n, k, alpha, a, atype, lda, sa, b, btype, ldb, sb, beta,
        c, ctype, ldc, sc, count, compute, algorithm,
    ) -> int:
        # fmt: on
        assert atype == btype == ctype
        dtype = NUMBERS[atype]
        left = read(a, dtype, *((k, m) if opa else (m, k)), lda, sa, count)
        right = read(b, dtype, *((n, k) if opb else (k, n)), ldb, sb, count)
        left = left.swapaxes(1, 2) if opa else left
        right = right.swapaxes(1, 2) if opb else right
        read(c, dtype, m, n, ldc, sc, count)[...] = left @ right
        return 0


@pytest.fixture(scope="module", autouse=True)
def stand_in() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cublas, "_ready", lambda xp: cublas._Ready(ctypes.c_void_p(0), 0))
        patch.setattr(cublas, "_library", lambda major: StandIn())
        patch.setattr(cublas, "_pointer", lambda array: array.ctypes.data)
        yield


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    generator = np.random.default_rng(0)
    found = generator.integers(-4, 5, shape).astype(dtype)
    return found + 1j * generator.integers(-4, 5, shape) if "complex" in dtype else found


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two arrays that can be multiplied, of any strides."""
    size = st.integers(0, 4)
    rows, inner, columns = draw(size), draw(size), draw(size)
    batch = draw(st.lists(st.integers(1, 3), max_size=3))

    def operand(*matrix: int) -> Any:
        kept = draw(st.integers(0, len(batch))) if len(matrix) == 2 else len(batch)
        shape = [draw(st.sampled_from([1, size])) for size in batch[kept:]] + list(matrix)
        order = draw(st.permutations(range(len(shape))))
        strange = [shape[at] * draw(st.sampled_from([1, 1, 2])) for at in order]
        array = numbers(tuple(strange), "float64").transpose(np.argsort(order))
        steps = [
            slice(None, None, array.shape[at] // size if size else None)
            for at, size in enumerate(shape)
        ]
        array = array[tuple(steps)]
        return array[..., ::-1] if draw(st.booleans()) else array

    a = operand(rows, inner) if draw(st.integers(0, 4)) else operand(inner)
    b = operand(inner, columns) if draw(st.integers(0, 4)) else operand(inner)
    return a, b


@drawn(300)
@given(operands())
def test_any_strides_and_batches(pair: tuple[Any, Any]) -> None:
    a, b = pair
    found = cublas.product(np, a, b)
    np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize("dtype", NUMBERS.values())
def test_dtypes(dtype: str) -> None:
    a, b = numbers((2, 3, 4), dtype).astype(dtype), numbers((4, 5), dtype).astype(dtype)
    found = cublas.product(np, a, b)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, a @ b)


def test_what_cublas_can_read_is_not_copied() -> None:
    a = np.zeros((6, 5, 4))
    for view, turned in (
        (a, False),
        (a.swapaxes(1, 2), True),
        (a[::2], False),
        (a[:, :, :3], False),
    ):
        found = cublas.stack(np, view, view.shape[:-2])
        assert np.shares_memory(found.array, a)
        assert found.turned is turned
    heads = np.zeros((2, 7, 3, 4)).transpose(0, 2, 1, 3)
    # Two dimensions of a batch that cannot be joined into one step: copied.
    assert not np.shares_memory(cublas.stack(np, heads, (2, 3)).array, heads)


def test_an_integer_dtype_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="int64"):
        cublas.product(np, np.ones((2, 2), "int64"), np.ones((2, 2), "int64"))


def test_a_failure_says_its_number() -> None:
    with pytest.raises(RuntimeError, match="status 13"):
        cublas._check(13)


def test_sizes() -> None:
    assert math.prod(cublas.product(np, np.ones((0, 3)), np.ones((3, 2))).shape) == 0
    assert not cublas.product(np, np.ones((2, 0)), np.ones((0, 2))).any()
