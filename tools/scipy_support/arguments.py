"""The arguments of the calls, as NumPy's arrays or as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

_rng = np.random.default_rng(7)
_rows = _rng.normal(size=(6, 2))
_distances = np.array([np.hypot(*(_rows[i] - _rows[j])) for i in range(6) for j in range(i)])


def _arrays() -> dict[str, Any]:
    from scipy.cluster import hierarchy

    tree = hierarchy.single(_distances)
    return {
        "x": _rng.normal(size=12), "y": _rng.normal(size=12),
        "p": _rng.uniform(0.4, 2.0, size=12), "q": _rng.uniform(0.4, 2.0, size=12),

        "v": np.linspace(0.5, 2.0, 12), "w": np.linspace(2.0, 1.0, 12),
        "u": _rng.uniform(0.1, 0.8, size=12), "c": np.array([0.2, 0.5, 0.3]),
        "b": np.array([0.3, 0.4]), "a": np.array([1.2, -0.4, 0.1]),
        "cut": np.array(0.3), "bands": np.array([0.0, 0.3, 0.5, 1.0]),
        "gains": np.array([1.0, 1.0, 0.0, 0.0]), "row": np.array([[0.3, 0.7]]),
        "zeros": np.array([0.5 + 0.2j, 0.5 - 0.2j]), "poles": np.array([0.3 + 0.4j, 0.3 - 0.4j]),
        "sos": np.array([[0.3, 0.4, 0.1, 1.0, -0.4, 0.1]]), "long": _rng.normal(size=40),
        "square": np.array([[0.1, 0.4], [0.2, -0.3]]), "rows": _rows,
        "image": _rng.uniform(size=(5, 6)), "large": _rng.uniform(size=(30, 30)),
        "kernel": _rng.normal(size=(3, 3)),
        "mask": _rng.uniform(size=(5, 6)) > 0.4,
        "labels": np.array([[0, 1, 1, 0, 2, 2]] * 5), "index": np.array([1, 2]),
        "bytes_": _rng.integers(0, 9, size=(5, 6)).astype(np.uint8),
        "spectrum": np.fft.fft2(_rng.uniform(size=(5, 6))),
        "coordinates": _rng.uniform(0, 4, size=(2, 7)),
        "counts": np.arange(12) % 3, "more": np.arange(12) % 3 + 2,
        "places": np.linspace(0.0, 1.0, 12), "distances": _distances, "tree": tree,
        "knots": np.array([0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]),
        "clamped": np.array([0.0, 0.0, 0.0, 0.4, 1.0, 1.0, 1.0]),
        "mlab": hierarchy.to_mlab_linkage(tree), "inconsistency": hierarchy.inconsistent(tree),
        "members": hierarchy.fcluster(tree, 1.0),
    }  # fmt: skip


ARRAYS: dict[str, Any] = _arrays()

# Numbers that are positions, which are not differentiable.
FIXED = frozenset(
    {
        "bands",
        "clamped",
        "cut",
        "gains",
        "inconsistency",
        "knots",
        "mlab",
        "places",
        "tree",
        "v",
        "w",
    }
)


def names(call: str) -> list[str]:
    """The arrays that a call takes."""
    words = set(compile(call, "call", "eval").co_names)
    for constant in compile(call, "call", "eval").co_consts:
        words |= set(getattr(constant, "co_names", ()))
    return [name for name in ARRAYS if name in words]


def helpers(xp: Any) -> dict[str, Any]:
    """Other objects that calls use besides arrays."""
    rng = np.random.default_rng(3)

    def normal(size: Any) -> Any:
        return xp.asarray(np.random.default_rng(3).normal(size=size))

    def mean(x: Any, axis: int = -1) -> Any:
        return xp.mean(x, axis=axis)

    def difference(x: Any, y: Any, axis: int = -1) -> Any:
        return xp.mean(x, axis=axis) - xp.mean(y, axis=axis)

    def cube(x: Any) -> Any:
        return x**3

    return {
        "xp": xp, "np": np, "scipy": scipy, "rng": rng, "normal": normal, "mean": mean,
        "difference": difference, "cube": cube,
    }  # fmt: skip
