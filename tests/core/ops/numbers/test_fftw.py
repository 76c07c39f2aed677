"""Transforms by FFTW, which take the place of others from a size on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import plugrad
from plugrad_cpu.kernels import spectral
from plugrad_cpu.numerics import fftw, fourier

pytest.importorskip("pyfftw")

MODES = 3


@pytest.fixture(autouse=True)
def everything_by_fftw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "_ENOUGH", 0)
    monkeypatch.setattr(spectral, "_LONG", 0)


@st.composite
def signals(draw: st.DrawFn) -> tuple[Any, tuple[int, ...]]:
    """An array, in rows or in columns, and the dimensions of a transform."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dims = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    dtype = draw(st.sampled_from(["f4", "f8"]))
    array = np.random.default_rng(0).standard_normal((2, *shape)).astype(dtype)
    if draw(st.booleans()):
        array = np.asfortranarray(array)
    return array, tuple(dims)


def by_numpy(name: str, a: Any, dims: tuple[int, ...], mode: int) -> Any:
    """NumPy's transform, which is exact enough and has no state."""
    forward = not name.startswith("i")
    norm = "ortho" if mode == 1 else "backward" if (mode == 0) == forward else "forward"
    return getattr(np.fft, name)(a, axes=dims, norm=norm)


def assert_close(found: Any, expected: Any) -> None:
    limit = 1e-5 if found.real.dtype == np.float32 else 1e-13
    assert found.shape == expected.shape
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=100 * limit, atol=100 * limit)


@settings(deadline=None, max_examples=60)
@given(signals(), st.integers(0, MODES - 1))
def test_values_are_numpys(signal: tuple[Any, tuple[int, ...]], mode: int) -> None:
    (real, imaginary), dims = signal
    whole = real + 1j * imaginary
    kept = whole.copy()
    for name, forward in (("fftn", True), ("ifftn", False)):
        found = spectral.c2c(whole, dims, mode, forward)
        assert found.dtype == whole.dtype
        assert_close(found, by_numpy(name, whole, dims, mode))
    for onesided in (True, False):
        found = spectral.r2c(real, dims, mode, onesided)
        assert found.dtype == whole.dtype
        assert_close(found, by_numpy("rfftn" if onesided else "fftn", real, dims, mode))
    np.testing.assert_array_equal(whole, kept)


def test_memory_that_starts_anywhere() -> None:
    memory = np.arange(9.0)
    spectrum = plugrad.fft.fft(plugrad.from_numpy(memory)[1:])
    np.testing.assert_allclose(spectrum.numpy(), np.fft.fft(memory[1:]))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(3, 1024), (1024, 40), (5, 256, 9), (2, 3, 100)])
def test_in_pieces(shape: tuple[int, ...], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_BLOCK", 1 << 12)
    monkeypatch.setattr(fourier, "_LONG", 64)  # rows of which are matrices
    real, imaginary = np.random.default_rng(0).standard_normal((2, *shape))
    dims = tuple(range(len(shape)))
    for forward, expected in ((True, np.fft.fftn), (False, np.fft.ifftn)):
        found = fourier.Transform(forward, threads).whole(real + 1j * imaginary, dims)
        scale = 1 if forward else found.size
        np.testing.assert_allclose(found, expected(real + 1j * imaginary) * scale, atol=1e-10)
    found = fourier.Transform(True, threads).half(real, (real.ndim - 1,))
    np.testing.assert_allclose(found, np.fft.rfft(real), atol=1e-11)


def test_gradients() -> None:
    signal = plugrad.rand(2, 5, dtype=plugrad.float64, requires_grad=True)
    assert plugrad.autograd.gradcheck(
        lambda x: plugrad.fft.irfft2(plugrad.fft.rfft2(x) * 2), signal
    )


def test_threads_do_not_share_a_plan() -> None:
    signals = [np.random.default_rng(seed).standard_normal((64, 64)) + 0j for seed in range(4)]
    expected = [np.fft.fft(signal) for signal in signals]
    differ: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            found = spectral.c2c(signals[number], (1,), 0, True)
            if not np.allclose(found, expected[number]):
                differ.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert differ == []


def test_plans_are_dropped() -> None:
    for length in range(1, 50):
        spectral.c2c(np.ones(length, complex), (0,), 0, True)
    assert len(fftw.plans) <= fftw._KEPT


@pytest.mark.parametrize("threads", [1, 3])
def test_real_numbers_in_pairs(
    threads: int, monkeypatch: pytest.MonkeyPatch, torch_oracle: Any
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(fourier, "ENOUGH", 0)
    monkeypatch.setattr(fourier, "_PAIRS", 1 << 10)
    monkeypatch.setattr(spectral, "thread_count", lambda: threads)
    fft, generator = torch_oracle.fft, np.random.default_rng(0)
    for shape, dims in [
        ((32,), (0,)),
        ((70, 64), (1,)),
        ((5, 3, 128), (2,)),
        ((20, 32), (0, 1)),
        ((4, 6, 1024), (1, 0, 2)),
    ]:
        real = generator.standard_normal(shape).astype(np.float32)
        for x in (real, np.asfortranarray(real), np.repeat(real, 2, -1)[..., ::2]):
            assert fourier.pair_loops(x.shape[-1], x.size, x.dtype) is not None
            for norm in ("backward", "ortho", "forward"):
                half = plugrad.fft.rfftn(plugrad.from_numpy(x), dim=dims, norm=norm)
                expected = fft.rfftn(torch_oracle.tensor(x), dim=dims, norm=norm).numpy()
                assert_near(half.numpy(), expected)
                # The first and the last element have imaginary parts, which do not count.
                given = expected + generator.standard_normal(expected.shape).astype(np.float32) * 1j
                kept = given.copy()
                back = plugrad.fft.irfftn(plugrad.from_numpy(given), dim=dims, norm=norm)
                wanted = fft.irfftn(torch_oracle.from_numpy(given), dim=dims, norm=norm)
                assert back.numpy().dtype == np.float32
                assert_near(back.numpy(), wanted.numpy())
                np.testing.assert_array_equal(given, kept)
        if len(dims) == 1:
            whole = plugrad.fft.fft(plugrad.from_numpy(real))
            assert_near(whole.numpy(), fft.fft(torch_oracle.from_numpy(real)).numpy())


def assert_near(found: Any, expected: Any) -> None:
    assert found.flags.c_contiguous
    assert found.dtype == expected.dtype
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=20 * size * np.finfo(found.dtype).eps)


def test_what_was_loaded_before_makes_no_difference_to_real_numbers() -> None:
    """A transform of fewer elements than load numba goes another way, loaded or not."""
    pytest.importorskip("numba")
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    assert fourier.pair_loops(64, fourier.ENOUGH, single) is not None
    assert fourier.pair_loops(64, fourier.ENOUGH - 1, single) is None
    assert fourier.pair_loops(64, fourier.ENOUGH, double) is None
    assert fourier.pair_loops(126, fourier.ENOUGH, single) is None


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system lists no threads")
def test_transforms_by_scipy_leave_no_threads_behind() -> None:
    """A fork waits for the threads of SciPy's pool, sometimes forever."""
    program = (
        "import os, plugrad; plugrad.set_num_threads(2); x = plugrad.rand(64, 4096)\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "plugrad.fft.fft(x[0]); before = threads(); plugrad.fft.fft(x); print(threads() - before)"
    )
    environment = {**os.environ, "PLUGRAD_CPU_CAPABILITY": "default"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "0\n"
