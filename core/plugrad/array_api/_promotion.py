"""Dtypes by the standard's rules: promotion, kinds, casts and limits.

A 0-dimensional array promotes like any other; PyTorch's operators treat it like a number. Unsigned
integers promote with signed ones, which PyTorch refuses.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from builtins import bool as _bool
from typing import Any, Final, NamedTuple

from plugrad.array_api._operators import Tensor
from plugrad.dtype import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_or_none,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plugrad.dtype import finfo as _finfo
from plugrad.dtype import iinfo as _iinfo

_SIGNED: Final = {2: int16, 4: int32, 8: int64}

BOOLS: Final = (bool_,)
SIGNED: Final = (int8, int16, int32, int64)
UNSIGNED: Final = (uint8, uint16, uint32, uint64)
REALS: Final = (float32, float64)
COMPLEXES: Final = (complex64, complex128)
KINDS: Final[dict[str, tuple[DType, ...]]] = {
    "bool": BOOLS,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REALS,
    "complex floating": COMPLEXES,
    "numeric": SIGNED + UNSIGNED + REALS + COMPLEXES,
}


def promoted(a: DType, b: DType) -> DType:
    """The dtype of an operation on arrays of two dtypes; TypeError if the standard has none."""
    found = promote_or_none(a, b)
    if found is not None:
        return found
    low, high = (a, b) if a.category <= b.category else (b, a)
    if not low.is_float8 and not high.is_float8:
        if low.category != high.category:
            return high
        if a.is_signed == b.is_signed:
            return a if a.itemsize > b.itemsize else b
        signed, unsigned = (a, b) if a.is_signed else (b, a)
        if signed.itemsize > unsigned.itemsize:
            return signed
        if unsigned.itemsize < 8:
            return _SIGNED[2 * unsigned.itemsize]
    raise TypeError(f"{a!r} and {b!r} have no common dtype: convert one of them with astype()")


def _category(scalar: object) -> int:
    if isinstance(scalar, _bool):
        return BOOL
    if isinstance(scalar, int):
        return INTEGER
    if isinstance(scalar, float):
        return FLOATING
    if isinstance(scalar, complex):
        return COMPLEX
    raise TypeError(f"expected an array, a dtype or a Python number, got {type(scalar).__name__}")


def _default(category: int) -> DType:
    """The dtype of a Python number of some kind."""
    if category == BOOL:
        return bool_
    if category == INTEGER:
        return int64
    real = get_default_dtype()
    return real if category == FLOATING else real.to_complex()


def result_type(*arrays_and_dtypes: Tensor | DType | complex) -> DType:
    """The dtype of an operation on arrays, dtypes and Python numbers.

    A number takes the dtype of the others, if that is of its kind or a higher one.

    >>> from plugrad import array_api as xp
    >>> xp.result_type(xp.int32, xp.uint8), xp.result_type(xp.ones(1, dtype=xp.float32), 2.0)
    (plugrad.int32, plugrad.float32)
    """
    common: DType | None = None
    highest = -1
    for each in arrays_and_dtypes:
        if isinstance(each, (Tensor, DType)):
            dtype: DType = each.dtype if isinstance(each, Tensor) else each
            common = dtype if common is None else promoted(common, dtype)
        else:
            highest = max(highest, _category(each))
    if common is None:
        if highest < 0:
            raise TypeError("result_type() needs at least one array, dtype or number")
        return _default(highest)
    if highest <= common.category:
        return common
    return common.to_complex() if common.category == FLOATING else _default(highest)


def converted(x: Any, dtype: DType, device: Any) -> Tensor:
    """An operand, a tensor or a number, in the dtype of an operation."""
    if isinstance(x, Tensor):
        return x if x.dtype is dtype else x.to(dtype)
    from plugrad.tensor.creation.from_data import scalar_tensor

    made: Tensor = scalar_tensor(x, dtype=dtype, device=device)
    return made


def operands(*given: Any) -> list[Tensor]:
    """Tensors and numbers, at least one tensor among them, as tensors of their common dtype."""
    dtype = result_type(*given)
    device = None
    for x in given:
        if isinstance(x, Tensor):
            device = x.device
            break
    return [converted(x, dtype, device) for x in given]


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> _bool:
    """Whether a dtype is of a kind: a dtype, the name of a kind such as "real floating", or one of
    several of them.

    >>> from plugrad import array_api as xp
    >>> xp.isdtype(xp.uint16, "integral"), xp.isdtype(xp.uint16, ("bool", xp.int8))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype(): unknown kind {kind!r}; expected one of {', '.join(KINDS)}")
    if kind in ("real floating", "numeric") and dtype.category == FLOATING:
        return True  # also float16 and bfloat16, which the standard lacks
    return dtype in KINDS[kind]


def can_cast(from_: DType | Tensor, to: DType, /) -> _bool:
    """Whether `to` holds all values of a dtype, or of an array's, by the standard's promotion.

    >>> from plugrad import array_api as xp
    >>> xp.can_cast(xp.int8, xp.int32), xp.can_cast(xp.int32, xp.int8)
    (True, False)
    """
    dtype: DType = from_.dtype if isinstance(from_, Tensor) else from_
    kinds = {dtype.category, to.category}
    if len(kinds) == 2 and kinds != {FLOATING, COMPLEX}:
        return False
    try:
        return promoted(dtype, to) is to
    except TypeError:
        return False


class finfo_object(NamedTuple):
    """Limits of a floating point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> finfo_object:
    """Limits of a floating point dtype or an array's dtype; for a complex one, of its parts.

    >>> from plugrad import array_api as xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.float32).eps
    (32, 1.1920928955078125e-07)
    """
    dtype: DType = type.dtype if isinstance(type, Tensor) else type
    info = _finfo(dtype)
    return finfo_object(
        info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype.to_real()
    )


def iinfo(type: DType | Tensor, /) -> iinfo_object:
    """Limits of an integer dtype, or of an array's.

    >>> from plugrad import array_api as xp
    >>> xp.iinfo(xp.int16).max
    32767
    """
    dtype: DType = type.dtype if isinstance(type, Tensor) else type
    info = _iinfo(dtype)
    return iinfo_object(info.bits, info.max, info.min, dtype)
