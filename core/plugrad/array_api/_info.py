"""The namespace's information about itself: capabilities, devices and dtypes."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

from plugrad.array_api._promotion import BOOLS, KINDS
from plugrad.device import Device
from plugrad.dispatch.backends.active import active_backends, canonical_device, find_backend
from plugrad.dtype import DType, get_default_dtype, int64

_MOST_DIMENSIONS = 64  # NumPy's, under which host memory is arranged


class Info:
    """Inspection of the namespace; `__array_namespace_info__()` gives it."""

    def capabilities(self) -> dict[str, Any]:
        """What arrays can do: their shapes may depend on elements."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MOST_DIMENSIONS,
        }

    def default_device(self) -> Device:
        """The device of new arrays."""
        return canonical_device(None)

    def devices(self) -> list[Device]:
        """The devices of backends that are active, the host's among them."""
        found: dict[Device, None] = {find_backend("cpu").device(None): None}
        for active in active_backends():
            if active.name not in ("cpu", "meta"):
                count = active.backend.device_count()
                found.update(dict.fromkeys(active.device(index) for index in range(count)))
        return list(found)

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of arrays that are made from Python numbers."""
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes that a device supports, by name: all, or only some kinds."""
        backend = find_backend(canonical_device(device).type).backend
        kinds = (kind,) if isinstance(kind, str) else kind
        if kinds is None:
            wanted: list[DType] = [*BOOLS, *KINDS["numeric"]]
        else:
            wanted = []
            for each in kinds:
                if each not in KINDS:
                    raise ValueError(f"dtypes(): unknown kind {each!r}")
                wanted += KINDS[each]
        have = backend.dtypes()
        return {dtype.name: dtype for dtype in wanted if dtype in have}


def __array_namespace_info__() -> Info:
    """What the namespace can do, and which devices and dtypes it has."""
    return Info()
