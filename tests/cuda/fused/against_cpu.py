"""One call of a fused kernel in the emulation, and of the CPU's kernel, with the same arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from plugrad.plugins import package_kernels
from plugrad_cuda.fused import kernels
from tests.cuda.emulation.runtime import Emulation

Array = Any
CPU = package_kernels("plugrad_cpu.kernels")
DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
# Relative to the largest element. 16 bits: both compute in float32, so one step apart at most.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def random(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    rng = np.random.default_rng([seed, *shape])
    return rng.normal(size=shape).astype(DTYPES[dtype])


def indices(shape: tuple[int, ...], below: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, below, shape)


def _copy(value: Any) -> Any:
    """The same values with the same strides: kernels may write into them."""
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return value.copy() if isinstance(value, np.ndarray) else value
    return value


def _same(ours: Any, theirs: Any) -> None:
    if theirs is None:
        assert ours is None
        return
    assert isinstance(ours, np.ndarray)
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    wanted = theirs.astype(np.float64)
    tolerance = TOLERANCE.get(theirs.dtype.name, 0.0)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(float(finite.max()), 1.0) if finite.size else 1.0
    np.testing.assert_allclose(
        ours.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * scale
    )


def check(run: Emulation, name: str, *args: Any) -> Any:
    """Compares results, and what was written into the arguments; returns the results.

    The fused kernel has no fallback, so one that does not take the arguments fails.
    """
    ours, theirs = [_copy(a) for a in args], [_copy(a) for a in args]
    found = kernels({}, run)[name](*ours)
    expected = CPU[name](*theirs)
    several = isinstance(expected, tuple)
    pairs = zip(found, expected, strict=True) if several else [(found, expected)]
    for ours_part, theirs_part in pairs:
        _same(ours_part, theirs_part)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, np.ndarray):
            _same(one, other)
    return found
