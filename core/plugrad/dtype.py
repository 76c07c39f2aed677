"""Element types: their names, categories, NumPy counterparts and PyTorch's promotion table."""

from __future__ import annotations

import importlib
from typing import Any, Final, final

from plugrad._printed_name import printed_name

BOOL: Final = 0
INTEGER: Final = 1
FLOATING: Final = 2
COMPLEX: Final = 3


# Not empty once all dtypes are made.
_sealed: Final[list[str]] = []


@final
class DType:
    """One element type, such as ``plugrad.float32``. There is exactly one object for each.

    Attributes:
        name: ``"float32"``.
        scalar_name: PyTorch's name in error messages, ``"Float"``.
        itemsize: bytes per element.
        category: 0 bool, 1 integer, 2 floating point, 3 complex.
        is_float8: one of the 8-bit floats, which are for storage and do not promote.

    >>> import plugrad
    >>> plugrad.float32 is plugrad.tensor([1.0]).dtype
    True
    >>> plugrad.int16.itemsize, plugrad.int16.is_floating_point, plugrad.complex64.is_complex
    (2, False, True)
    """

    def __init__(
        self,
        name: str,
        scalar_name: str,
        itemsize: int,
        category: int,
        index: int,
        is_signed: bool = True,
    ) -> None:
        if _sealed and index != -1:  # Nodes have marks of their own.
            raise TypeError("cannot create 'plugrad.dtype' instances")
        self.name = name
        self.scalar_name = scalar_name
        self.itemsize = itemsize
        self.category = category
        self.index = index
        self.is_floating_point: bool = category == FLOATING
        self.is_complex: bool = category == COMPLEX
        self.is_signed = is_signed
        self.is_differentiable: bool = category >= FLOATING
        self.is_float8: bool = category == FLOATING and itemsize == 1
        self._numpy: Any = None

    @property
    def numpy(self) -> Any:
        """The `numpy.dtype` with this layout (those that NumPy lacks come from ml_dtypes).

        >>> import plugrad
        >>> plugrad.float64.numpy
        dtype('float64')
        """
        if self._numpy is None:
            import numpy

            if self.name == "bfloat16" or self.is_float8:
                self._numpy = numpy.dtype(getattr(_ml_dtypes(self.name), self.name))
            else:
                self._numpy = numpy.dtype(self.name)
        return self._numpy

    def to_real(self) -> DType:
        """The dtype of the real part: complex64 gives float32, a real dtype itself.

        >>> import plugrad
        >>> plugrad.complex64.to_real(), plugrad.int32.to_real()
        (plugrad.float32, plugrad.int32)
        """
        if self.category != COMPLEX:
            return self
        return float32 if self is complex64 else float64

    def to_complex(self) -> DType:
        """The complex dtype that holds this one: float64 gives complex128.

        >>> import plugrad
        >>> plugrad.float64.to_complex(), plugrad.float16.to_complex()
        (plugrad.complex128, plugrad.complex64)
        """
        if self.category == COMPLEX:
            return self
        if self.is_float8:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return printed_name() + "." + self.name

    def __hash__(self) -> int:
        return self.index

    def __reduce__(self) -> Any:
        return (dtype_by_name, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self


def _ml_dtypes(name: str) -> Any:
    """The library of NumPy's narrow floats: a dependency of backends, not of the core."""
    try:
        return importlib.import_module("ml_dtypes")
    except ImportError as error:
        raise RuntimeError(
            f"plugrad.{name} on NumPy needs ml_dtypes: pip install ml_dtypes"
        ) from error


uint8: Final = DType("uint8", "Byte", 1, INTEGER, 0, is_signed=False)
int8: Final = DType("int8", "Char", 1, INTEGER, 1)
int16: Final = DType("int16", "Short", 2, INTEGER, 2)
int32: Final = DType("int32", "Int", 4, INTEGER, 3)
int64: Final = DType("int64", "Long", 8, INTEGER, 4)
float16: Final = DType("float16", "Half", 2, FLOATING, 5)
float32: Final = DType("float32", "Float", 4, FLOATING, 6)
float64: Final = DType("float64", "Double", 8, FLOATING, 7)
complex64: Final = DType("complex64", "ComplexFloat", 8, COMPLEX, 8)
complex128: Final = DType("complex128", "ComplexDouble", 16, COMPLEX, 9)
bool_: Final = DType("bool", "Bool", 1, BOOL, 10, is_signed=False)
bfloat16: Final = DType("bfloat16", "BFloat16", 2, FLOATING, 11)
uint16: Final = DType("uint16", "UInt16", 2, INTEGER, 12, is_signed=False)
uint32: Final = DType("uint32", "UInt32", 4, INTEGER, 13, is_signed=False)
uint64: Final = DType("uint64", "UInt64", 8, INTEGER, 14, is_signed=False)
float8_e4m3fn: Final = DType("float8_e4m3fn", "Float8_e4m3fn", 1, FLOATING, 15)
float8_e5m2: Final = DType("float8_e5m2", "Float8_e5m2", 1, FLOATING, 16)

ALL_DTYPES: Final[tuple[DType, ...]] = (
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    float32,
    float64,
    complex64,
    complex128,
    bool_,
    bfloat16,
    uint16,
    uint32,
    uint64,
    float8_e4m3fn,
    float8_e5m2,
)
_sealed.append("all")
_BY_NAME: Final[dict[str, DType]] = {dtype.name: dtype for dtype in ALL_DTYPES}


def dtype_by_name(name: str) -> DType:
    """The dtype called `name`; ValueError lists the names there are."""
    found = _BY_NAME.get(name)
    if found is None:
        raise ValueError(f"unknown dtype {name!r}; expected one of {', '.join(sorted(_BY_NAME))}")
    return found


# NumPy computes a dtype's name on every access, which takes longer than a small kernel.
_BY_NUMPY: Final[dict[Any, DType]] = {}


def from_numpy(numpy_dtype: Any) -> DType:
    """The dtype with the layout of a `numpy.dtype`; TypeError when there is none."""
    known = _BY_NUMPY.get(numpy_dtype)
    if known is not None:
        return known
    found = _BY_NAME.get(numpy_dtype.name)
    if found is None:
        supported = ", ".join(dtype.name for dtype in ALL_DTYPES)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype.name}. The only supported types are: "
            f"{supported}."
        )
    _BY_NUMPY[numpy_dtype] = found
    return found


# PyTorch promotes these to a real floating point dtype, and with nothing else.
_WIDE_UNSIGNED: Final = (uint16, uint32, uint64)


def _promotion_table() -> list[list[DType | None]]:
    width = {BOOL: 0, INTEGER: 1, FLOATING: 2, COMPLEX: 3}

    def promote(a: DType, b: DType) -> DType | None:
        if a is b:
            return a
        if a.is_float8 or b.is_float8:
            return None
        low, high = (a, b) if width[a.category] <= width[b.category] else (b, a)
        if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and high.category != FLOATING:
            return None
        if low.category != high.category:
            if high.category == COMPLEX and low is float64:
                return complex128
            return high
        if a.category == INTEGER:
            wide, narrow = (a, b) if a.itemsize >= b.itemsize else (b, a)
            if wide.is_signed == narrow.is_signed or wide.itemsize > narrow.itemsize:
                return wide if wide.is_signed or not narrow.is_signed else int16
            return int16
        if a.itemsize == b.itemsize:
            return float32
        return a if a.itemsize > b.itemsize else b

    return [
        [promote(ALL_DTYPES[i], ALL_DTYPES[j]) for j in range(len(ALL_DTYPES))]
        for i in range(len(ALL_DTYPES))
    ]


_PROMOTION: Final = _promotion_table()


def promote_or_none(type1: DType, type2: DType) -> DType | None:
    """`promote_types`, or None where that raises."""
    return _PROMOTION[type1.index][type2.index]


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both, by PyTorch's table.

    Raises:
        RuntimeError: PyTorch's table has none: uint16, uint32 and uint64 promote only to real
            floating point dtypes, the 8-bit floats only to themselves.

    >>> import plugrad
    >>> plugrad.promote_types(plugrad.int32, plugrad.float16)
    plugrad.float16
    """
    found = _PROMOTION[type1.index][type2.index]
    if found is None:
        raise no_promotion(type1, type2)
    return found


def no_promotion(type1: DType, type2: DType) -> RuntimeError:
    """PyTorch's error for two dtypes that do not promote."""
    kinds = "uint16, uint32, uint64 types"
    if type1.is_float8 or type2.is_float8:
        kinds = "Float8 Types"
    return RuntimeError(
        f"Promotion for {kinds} is not supported, attempted to promote {type1.scalar_name} and "
        f"{type2.scalar_name}"
    )


class _Default:
    def __init__(self) -> None:
        self.dtype = float32


_default: Final = _Default()


def get_default_dtype() -> DType:
    """The dtype that Python floats become: float32 until `set_default_dtype` changes it.

    >>> import plugrad
    >>> plugrad.get_default_dtype() is plugrad.tensor([1.0]).dtype
    True
    """
    return _default.dtype


def set_default_dtype(d: DType) -> None:
    """Set the dtype that Python floats become; it must be a floating point dtype.

    >>> import plugrad
    >>> plugrad.set_default_dtype(plugrad.float64)
    >>> plugrad.tensor([1.0]).dtype
    plugrad.float64
    >>> plugrad.set_default_dtype(plugrad.float32)
    """
    if not isinstance(d, DType) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    if d.is_float8:
        raise TypeError(f"{d!r} is for storage and cannot be the default dtype")
    _default.dtype = d


def _meant(function: str, given: object) -> DType:
    """The given dtype, or the dtype of a Python type; TypeError for anything else."""
    if isinstance(given, DType):
        return given
    if given is int:
        return int64
    if given is float:
        return float64
    if given is complex:
        return complex128
    if given is bool:
        return bool_
    raise TypeError(
        f"{function}(): argument 'type' (position 1) must be plugrad.dtype, not "
        f"{type(given).__name__}"
    )


# Binary digits, exponent of the smallest normal number, largest number, exact decimal digits.
_FLOATS: Final[dict[str, tuple[int, int, float, int]]] = {
    "float8_e4m3fn": (4, -6, 448.0, 0),
    "float8_e5m2": (3, -14, 57344.0, 0),
    "float16": (11, -14, 65504.0, 3),
    "bfloat16": (8, -126, (2.0 - 2.0**-7) * 2.0**127, 2),
    "float32": (24, -126, (2.0 - 2.0**-23) * 2.0**127, 6),
    "float64": (53, -1022, (2.0 - 2.0**-52) * 2.0**1023, 15),
}


@final
class finfo:
    """Limits of a floating point dtype: bits, eps, max, min, tiny, smallest_normal, resolution.

    >>> import plugrad
    >>> plugrad.finfo(plugrad.float32).eps, plugrad.finfo(plugrad.bfloat16).bits
    (1.1920928955078125e-07, 16)
    """

    def __init__(self, type: object = None) -> None:
        dtype = get_default_dtype() if type is None else _meant("finfo", type)
        if dtype.category < FLOATING:
            raise TypeError(
                f"plugrad.finfo() requires a floating point input type, got {dtype!r}. "
                "Use plugrad.iinfo for integer types."
            )
        real = dtype.to_real()
        digits, exponent, largest, decimals = _FLOATS[real.name]
        tiny = 2.0**exponent
        self.dtype: str = real.name
        self.bits: int = real.itemsize * 8
        self.eps: float = 2.0 ** (1 - digits)
        self.max: float = largest
        self.min: float = -largest
        self.tiny: float = tiny
        self.smallest_normal: float = tiny
        self.resolution: float = 1.0 / 10.0**decimals

    def __reduce__(self) -> Any:
        return (finfo, (dtype_by_name(self.dtype),))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


@final
class iinfo:
    """Limits of an integer dtype: bits, max, min.

    >>> import plugrad
    >>> plugrad.iinfo(plugrad.int8).min, plugrad.iinfo(plugrad.int8).max
    (-128, 127)
    """

    def __init__(self, type: object) -> None:
        dtype = _meant("iinfo", type)
        if dtype.category != INTEGER:
            raise TypeError(
                f"plugrad.iinfo() requires an integer input type, got {dtype!r}. "
                "Use plugrad.finfo for floating point types."
            )
        self.dtype: str = dtype.name
        self.bits: int = dtype.itemsize * 8
        self.max: int = 2 ** (self.bits - 1) - 1 if dtype.is_signed else 2**self.bits - 1
        self.min: int = -(2 ** (self.bits - 1)) if dtype.is_signed else 0

    def __reduce__(self) -> Any:
        return (iinfo, (dtype_by_name(self.dtype),))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
