"""An Array API namespace and what it declares: functions, dtypes, devices, capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from plugrad.dtype import ALL_DTYPES, BOOL, COMPLEX, FLOATING, INTEGER, DType

Array = Any

OLDEST: Final = "2023.12"

# Required for conversions, casts and numbers among arrays.
REQUIRED: Final = ("asarray", "astype", "full", "zeros")
NEEDED_DTYPES: Final = ("bool", "int64")

# Functions that are younger than the oldest version this package works with. A namespace that
# speaks an older version may well have the name, and refuse when it is called.
_SINCE: Final = {
    "2024.12": {"count_nonzero", "cumulative_prod", "diff", "nextafter", "reciprocal"}
    | {"take_along_axis"},
    "2025.12": {"broadcast_shapes", "isin"},
}
_VERSION_OF: Final = {name: version for version, names in _SINCE.items() for name in names}


def _alike(info: Any, dtypes: Sequence[str] | None) -> list[Any]:
    """The devices that can do what the default one can: a backend has one set of dtypes."""
    first = info.default_device()
    known = set(info.dtypes(device=first))
    wanted = known if dtypes is None else known & set(dtypes)
    # Arrays on a library's "meta" device have no values.
    others = [
        device
        for device in info.devices()
        if device != first and not str(device).startswith("meta")
    ]
    return [first, *(each for each in others if wanted <= info.dtypes(device=each).keys())]


class Namespace:
    """An Array API namespace, as kernels use it.

    Args:
        xp: the namespace, such as ``array_api_strict`` or ``numpy``.
        devices: the devices to use, in order; by default its default one, and all others with the
            same dtypes.
        dtypes: names of the dtypes to use; by default all that it lists.

    Attributes:
        xp: the namespace.
        name: its name in messages.
        version: the version of the standard that it follows.
        devices: its own device objects; the index of a `plugrad.device` counts them.
        array_type: the class of its arrays.

    Raises:
        TypeError: `xp` is not a namespace of the standard, follows a version before 2023.12, or
            lacks something that every kernel needs.
    """

    def __init__(
        self, xp: Any, *, devices: Sequence[Any] | None = None, dtypes: Sequence[str] | None = None
    ) -> None:
        self.xp = xp
        self.name = str(getattr(xp, "__name__", type(xp).__name__))
        if not hasattr(xp, "__array_namespace_info__"):
            raise TypeError(
                f"from_array_namespace(): {self.name!r} has no __array_namespace_info__(), so it "
                f"is not a namespace of the Array API standard, {OLDEST} or later"
            )
        self.version = str(getattr(xp, "__array_api_version__", OLDEST))
        if self.version < OLDEST:
            raise TypeError(
                f"from_array_namespace(): {self.name!r} follows version {self.version} of the "
                f"Array API standard; {OLDEST} or later is needed"
            )
        lacking = [name for name in REQUIRED if not self._has(name)]
        if lacking:
            raise TypeError(
                f"from_array_namespace(): {self.name!r} lacks {', '.join(lacking)}, which every "
                "backend needs"
            )
        info = xp.__array_namespace_info__()
        self.devices = tuple(_alike(info, dtypes) if devices is None else devices)
        self._capabilities: dict[str, Any] = dict(info.capabilities())
        available: dict[str, Any] = dict(info.dtypes(device=self.devices[0]))
        for name in dtypes or ():
            # Such as bfloat16, which the standard lacks but the library may have.
            if name not in available and hasattr(xp, name):
                available[name] = getattr(xp, name)
        wanted = available if dtypes is None else set(dtypes) & available.keys()
        # An array's dtype may be another object than the namespace's attribute of that name.
        self._native = {
            dtype.name: self._dtype_object(available[dtype.name])
            for dtype in ALL_DTYPES
            if dtype.name in wanted
        }
        unknown = set(dtypes or ()) - available.keys()
        lacking = [name for name in NEEDED_DTYPES if name not in self._native]
        if lacking or unknown:
            raise TypeError(
                f"from_array_namespace(): {self.name!r} has the dtypes {', '.join(available)}"
                + (f", not {', '.join(sorted(unknown))}" if unknown else "")
                + (f"; {' and '.join(lacking)} must be among them" if lacking else "")
            )
        self._known = {self._native[d.name]: d for d in ALL_DTYPES if d.name in self._native}
        self.array_type = type(xp.zeros((1,), dtype=self.bool_, device=self.devices[0]))

    def _dtype_object(self, dtype: Any) -> Any:
        return self.xp.zeros((), dtype=dtype, device=self.devices[0]).dtype

    def has(self, *names: str) -> bool:
        """Whether the namespace has all these functions; ``"linalg.solve"`` is one of an
        extension."""
        return all(self._has(name) for name in names)

    def _has(self, name: str) -> bool:
        if _VERSION_OF.get(name, OLDEST) > self.version:
            return False
        found = self.xp
        for part in name.split("."):
            found = getattr(found, part, None)
        return found is not None

    def can(self, capability: str) -> bool:
        """Whether it claims a capability: ``"boolean indexing"``, ``"data-dependent shapes"``."""
        return bool(self._capabilities.get(capability, False))

    @property
    def dtype_names(self) -> tuple[str, ...]:
        return tuple(self._native)

    @property
    def bool_(self) -> Any:
        return self._native["bool"]

    @property
    def int64(self) -> Any:
        return self._native["int64"]

    @property
    def small_integer(self) -> Any:
        """For 0 and 1."""
        return self._native.get("uint8", self.int64)

    def native(self, dtype: DType) -> Any:
        """The namespace's object for a dtype, or None."""
        return self._native.get(dtype.name)

    def dtype(self, array: Array) -> DType:
        """The dtype of an array; TypeError for one that plugrad does not support."""
        found = self._known.get(array.dtype)
        if found is None:
            raise TypeError(f"{self.name}'s dtype {array.dtype} is not one of plugrad's")
        return found

    def is_bool(self, array: Array) -> bool:
        return self.dtype(array).category == BOOL

    def is_complex(self, array: Array) -> bool:
        return self.dtype(array).category == COMPLEX

    def is_floating(self, array: Array) -> bool:
        """Whether elements are real or complex floating point numbers."""
        return self.dtype(array).category >= FLOATING

    def scalar(self, number: Any, like: Array) -> Array:
        """A Python number as a 0-dim array of the dtype and on the device of another array."""
        # A tracer's arrays may lack this attribute.
        return self.filled(number, like.dtype, getattr(like, "device", None))

    def filled(self, number: Any, dtype: Any, device: Any, shape: tuple[int, ...] = ()) -> Array:
        """An array of one number, which is cut down to the dtype if it does not fit."""
        kind = self._known[dtype]
        if kind.category == BOOL:
            number = bool(number)
        elif kind.category != COMPLEX:
            if isinstance(number, complex):
                number = number.real
            number = float(number) if kind.category == FLOATING else _wrapped(int(number), kind)
        return self.xp.full(shape, number, dtype=dtype, device=device)

    def operand(self, value: Any, like: Any) -> Array:
        """An array itself; a Python number as `scalar` converts it."""
        return self.scalar(value, like) if isinstance(value, (int, float, complex)) else value

    def without_bools(self, array: Array) -> Array:
        """Bools as the numbers 0 and 1, for functions that the standard defines for numbers."""
        return self.xp.astype(array, self.small_integer) if self.is_bool(array) else array

    def cast(self, array: Array, dtype: Any) -> Array:
        """A copy in another dtype; a complex number loses its imaginary part."""
        kind = self._known[dtype].category
        if kind == BOOL and not self.is_bool(array):
            return array != self.scalar(0, array)
        if kind != COMPLEX and self.is_complex(array):
            array = self.xp.real(array)
        return self.xp.astype(array, dtype)


def _wrapped(number: int, dtype: DType) -> int:
    """An integer modulo the range of an integer dtype."""
    assert dtype.category == INTEGER
    bits = 8 * dtype.itemsize
    number %= 1 << bits
    if dtype.is_signed and number >= 1 << (bits - 1):
        number -= 1 << bits
    return number
