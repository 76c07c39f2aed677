"""array-api-strict and `plugrad.array_api` side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np

import plugrad
from plugrad import array_api as xp

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = SIGNED + UNSIGNED
NUMERIC = INTEGER + REAL + COMPLEX
DTYPES = ("bool", *NUMERIC)


def pairs() -> list[tuple[str, str]]:
    """The pairs of dtypes that the standard promotes."""
    kinds = (("bool",), INTEGER, REAL + COMPLEX)
    found = [pair for kind in kinds for pair in itertools.product(kind, kind)]
    return [p for p in found if not ("uint64" in p and set(p) & set(SIGNED))]


def on_numpy(result: Any) -> Any:
    """Arrays in a result as NumPy's, named tuples as tuples."""
    if isinstance(result, (tuple, list)):
        return [on_numpy(each) for each in result]
    if isinstance(result, plugrad.Tensor):
        return result.detach().cpu().numpy()
    if hasattr(result, "__array_namespace__"):
        return np.asarray(result._array)
    return str(result).rpartition(".")[2] if "dtype" in type(result).__name__.lower() else result


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        tolerance = 1e-4 if expected.dtype in (np.float32, np.complex64) else 1e-9
        if expected.dtype.kind in "fc":
            np.testing.assert_allclose(found, expected, tolerance, tolerance)
        else:
            np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def compare(call: Callable[..., Any], *arrays: Any, device: str = "cpu") -> None:
    """Check that `call(namespace, *arrays)` gives what it gives with array-api-strict."""
    with np.errstate(all="ignore"):
        expected = call(strict, *(strict.asarray(np.array(a)) for a in arrays))
    found = call(xp, *(xp.asarray(np.array(a), device=device) for a in arrays))
    assert_same(on_numpy(found), on_numpy(expected))
