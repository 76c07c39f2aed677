"""The emulation finds errors of kernels, and converts 16-bit floats as the hardware does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrad_cuda.fused.runtime import source_text
from tests.cuda.emulation import build
from tests.cuda.emulation.runtime import Emulation, EmulationError

FAULTY = Path(build.__file__).with_name("faulty.cu")
KERNELS = (
    "reads_behind", "writes_behind", "writes_in_front", "neighbours<0>", "neighbours<1>",
    "half_of_the_barrier", "half_of_the_shuffle", "writes_nothing", "lanes", "to_float<half_t>",
    "to_float<bfloat16_t>", "from_float<half_t>", "from_float<bfloat16_t>",
)  # fmt: skip


class Faulty(Emulation):
    """The emulation of the kernels that have errors."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = {"faulty": KERNELS}

    def text(self, source: str) -> str:
        common, _ = source_text("sums").split("template <class A, class P>", 1)
        return common + FAULTY.read_text("utf-8")

    def __call__(self, kernel: str, *args: Any, threads: int = 64) -> None:
        self.launch("faulty", kernel, 1, (threads, 1), args)


@pytest.fixture(scope="module")
def faulty() -> Faulty:
    if build.compiler() is None:
        pytest.skip("there is no C++ compiler")
    return Faulty()


def test_reading_behind_an_array_is_found(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="reads_behind: access outside of an array"):
        faulty("reads_behind", np.ones(3, np.float32), np.ones(1, np.float32), 3)


def test_writing_behind_an_array_is_found(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="writes_behind: access outside of an array"):
        faulty("writes_behind", np.ones(3, np.float32), 3)


@pytest.mark.parametrize("count", [3, 1024])
def test_writing_in_front_of_an_array_is_found(faulty: Faulty, count: int) -> None:
    with pytest.raises(EmulationError, match=r"in front of an array|outside of an array"):
        faulty("writes_in_front", np.ones(count, np.float32), count)


def test_a_missing_barrier_shows(faulty: Faulty) -> None:
    expected = (np.arange(64) + 1) % 64
    out = np.empty(64, np.int64)
    faulty("neighbours<1>", out)
    np.testing.assert_array_equal(out, expected)
    faulty("neighbours<0>", out)
    assert (out != expected).any()


def test_a_barrier_that_not_all_threads_reach_is_found(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="a barrier that not all threads of the block reach"):
        faulty("half_of_the_barrier", np.ones(64, np.float32))


def test_a_shuffle_that_not_all_threads_reach_is_found(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="a shuffle that not all threads of the warp reach"):
        faulty("half_of_the_shuffle", np.ones(64, np.float32))


def test_a_block_is_a_whole_number_of_warps(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="no whole number of warps"):
        faulty("writes_nothing", np.ones(64, np.float32), threads=33)


def test_arguments_are_counted(faulty: Faulty) -> None:
    with pytest.raises(EmulationError, match="2 arguments for 1 parameters"):
        faulty("writes_nothing", np.ones(64, np.float32), 1)


def test_what_is_not_written_shows(faulty: Faulty) -> None:
    for dtype in ("float64", "float32", "float16", ml_dtypes.bfloat16):
        assert np.isnan(faulty.xp.empty((3,), dtype)).all()


def test_shuffles_exchange_between_lanes(faulty: Faulty) -> None:
    out = np.empty(64, np.int64)
    faulty("lanes", out)
    np.testing.assert_array_equal(out, np.arange(64) ^ 5)


@pytest.mark.parametrize(
    ("name", "dtype"), [("half_t", np.float16), ("bfloat16_t", ml_dtypes.bfloat16)]
)
def test_conversions_of_16_bits(faulty: Faulty, name: str, dtype: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    found = np.empty(every.size, np.float32)
    faulty(f"to_float<{name}>", every, found, every.size)
    np.testing.assert_array_equal(found, every.astype(np.float32))
    # Numbers, those half way between them, and those a little beside that.
    exact = np.sort(found[np.isfinite(found)])
    middle = ((exact[1:].astype(np.float64) + exact[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middle, np.float32(s * np.inf)) for s in (1, -1)]
    ends = np.array([np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 3e38, 1e-45], np.float32)
    x = np.concatenate((exact, middle, *beside, ends))
    out = np.empty(x.size, dtype)
    faulty(f"from_float<{name}>", x, out, x.size)
    with np.errstate(over="ignore"):
        expected = x.astype(dtype)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(out.view(np.uint16)[known], expected.view(np.uint16)[known])
    assert np.isnan(out[~known].astype(np.float32)).all()
