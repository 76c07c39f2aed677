"""Arrays between a namespace and the host: by DLPack if both sides support it, else by elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrad.plugins.array_namespace.namespace import Array, Namespace

HostArray = np.ndarray[Any, Any]


def from_host(ns: Namespace, array: HostArray, device: Any) -> Array:
    """A copy of a NumPy array on a device of the namespace.

    Raises TypeError if it has no such dtype.
    """
    if array.dtype.name not in ns.dtype_names:
        raise missing_dtype(ns, array.dtype.name)
    # A copy, so that writes do not reach the tensor's array; DLPack refuses read-only memory.
    copy = np.array(array, order="C")
    return _first_that_works(
        f"from the host to {ns.name}",
        lambda: ns.xp.from_dlpack(copy, device=device),
        lambda: ns.xp.asarray(copy, device=device),
        lambda: ns.xp.asarray(copy.tolist(), dtype=getattr(ns.xp, array.dtype.name), device=device),
    )


def to_host(ns: Namespace, array: Array) -> HostArray:
    """A copy of an array of the namespace in host memory."""
    found = _first_that_works(
        f"from {ns.name} to the host",
        lambda: np.from_dlpack(array),
        lambda: np.from_dlpack(array, device="cpu"),
        lambda: np.asarray(array),
        lambda: np.from_dlpack(array.to_device("cpu")),
    )
    return np.array(found, order="C")


def missing_dtype(ns: Namespace, name: str) -> TypeError:
    return TypeError(
        f"plugrad.{name} is not supported on this backend: {ns.name} has the dtypes "
        f"{', '.join(ns.dtype_names)}"
    )


def _first_that_works(direction: str, *ways: Callable[[], Any]) -> Any:
    """The result of the first method that does not raise; RuntimeError with the errors of all of
    them."""
    said: list[str] = []
    for way in ways:
        try:
            return way()
        except Exception as error:  # libraries refuse in many words
            said.append(f"{type(error).__name__}: {error}")
    raise RuntimeError(f"cannot copy an array {direction}: {'; '.join(said)}")
