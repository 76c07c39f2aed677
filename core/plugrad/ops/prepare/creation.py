"""Arguments of factory and fill functions: dtypes inferred, counts computed, ranges checked."""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad.device import Device
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int64,
)
from plugrad.memory_format import MemoryFormat, check_rank, contiguous_format, preserve_format
from plugrad.tensor.aliasing.overlap import check_overlap
from plugrad.tensor.base import TensorBase, ndim_of, numel_of, sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import (
    check_scalar_fits,
    scalar_dtype,
    stored_scalar,
    to_dtype,
)

Sizes = tuple[int, ...]
Prepared = tuple[object, ...]

# Integers up to 2**digits are exact in a floating point dtype.
_DIGITS: Final = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_CPP_NAMES: Final = {**CPP_NAMES, "int64": "int64_t"}
_SMALL: Final = 1 << 60
_AGAINST_THE_STEP: Final = "upper bound and lower bound inconsistent with step sign"
_LARGEST_HALF: Final = 65504


def _check_sizes(size: Sizes) -> None:
    for length in size:
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {list(size)}"
            )


def _or_default(dtype: DType | None) -> DType:
    return get_default_dtype() if dtype is None else dtype


def empty(
    size: Sizes,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Any:
    """Size, dtype and device; formats other than the contiguous one are for the decomposition."""
    _check_sizes(size)
    if memory_format is None or memory_format is contiguous_format:
        return (size, _or_default(dtype), device)
    if memory_format is preserve_format:
        raise RuntimeError(f"unsupported memory format {memory_format.cpp_name}")
    check_rank(memory_format, len(size))
    return DECLINED


def zeros(size: Sizes, dtype: DType | None, device: Device | None) -> Prepared:
    for length in size:
        if length < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
    return (size, _or_default(dtype), device)


def ones(size: Sizes, dtype: DType | None, device: Device | None) -> Prepared:
    _check_sizes(size)
    return (size, _or_default(dtype), device)


def full(size: Sizes, fill_value: object, dtype: DType | None, device: Device | None) -> Prepared:
    _check_sizes(size)
    kind = scalar_dtype(fill_value) if dtype is None else dtype
    return (size, stored_scalar(fill_value, kind), kind, device)


def _real(number: Any) -> Any:
    if isinstance(number, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return number


def _are_small(start: Any, end: Any, step: Any) -> bool:
    """Whether three numbers are integers far within 64 bits and the step is not 0."""
    return (
        type(start) is int
        and type(end) is int
        and type(step) is int
        and -_SMALL < start < _SMALL
        and -_SMALL < end < _SMALL
        and -_SMALL < step < _SMALL
        and step != 0
    )


def arange(start: Any, end: Any, step: Any, dtype: DType | None, device: Device | None) -> Prepared:
    """First number, step, count, dtype and device."""
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    if start is None:
        start = 0
    if (dtype is None or dtype is int64) and _are_small(start, end, step):
        if (step > 0 and end < start) or (step < 0 and end > start):
            raise RuntimeError(_AGAINST_THE_STEP)
        return (start, step, -((start - end) // step), int64, device)
    numbers = (_real(start), _real(end), _real(step))
    floating = any(isinstance(number, float) for number in numbers)
    if dtype is None:
        dtype = get_default_dtype() if floating else int64
    if dtype.category == BOOL:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    first, last, by = numbers
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if (by > 0 and last < first) or (by < 0 and last > first):
        raise RuntimeError(_AGAINST_THE_STEP)
    if dtype.category == INTEGER:
        for number in numbers:
            check_scalar_fits(number, int64)
        if dtype is int64:
            first, last, by = int(first), int(last), int(by)
            if by == 0:
                raise ValueError("step must be nonzero")
    if isinstance(first, int) and isinstance(last, int) and isinstance(by, int):
        count = -((first - last) // by)
    else:
        count = math.ceil((last - first) / by)
    if dtype.category == INTEGER:
        # Narrower integers are as many as the numbers that they are cut from.
        first, by = int(first), int(by)
    return (first, by, count, dtype, device)


def _steps(steps: int, dtype: DType, function: str) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype.category == BOOL:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")


def _span_dtype(start: object, end: object, dtype: DType | None) -> DType:
    if dtype is not None:
        return dtype
    default = get_default_dtype()
    if isinstance(start, complex) or isinstance(end, complex):
        return default.to_complex()
    return default


def _check_span(function: str, start: object, end: object, steps: int, dtype: DType) -> None:
    """RuntimeError unless both ends exist in the dtype; if there is one step, the first has to."""
    if not dtype.is_complex and (isinstance(start, complex) or isinstance(end, complex)):
        inferred = "float" if get_default_dtype() is float32 else "double"
        raise RuntimeError(
            f"{function}(): inferred dtype c10::complex<{inferred}> can't be safely cast to passed "
            f"dtype {dtype.scalar_name}"
        )
    if steps > 0:
        check_scalar_fits(start, dtype)
    if steps > 1:
        check_scalar_fits(end, dtype)


def _wrapped(number: Any, dtype: DType) -> Any:
    """A negative number as unsigned integers represent it."""
    if dtype.category == INTEGER and not dtype.is_signed:
        return int(number) % 2 ** (8 * dtype.itemsize)
    return number


def linspace(
    start: object, end: object, steps: int, dtype: DType | None, device: Device | None
) -> Prepared:
    kind = _span_dtype(start, end, dtype)
    _steps(steps, kind, "linspace")
    _check_span("linspace", start, end, steps, kind)
    return (_wrapped(start, kind), _wrapped(end, kind), steps, kind, device)


def logspace(
    start: object,
    end: object,
    steps: int,
    base: float,
    dtype: DType | None,
    device: Device | None,
) -> Prepared:
    kind = _span_dtype(start, end, dtype)
    _steps(steps, kind, "logspace")
    _check_span("logspace", start, end, steps, kind)
    return (start, end, steps, base, kind, device)


def eye(n: int, m: int | None, dtype: DType | None, device: Device | None) -> Prepared:
    columns = n if m is None else m
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if columns < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {columns}")
    return (n, columns, _or_default(dtype), device)


def _triangle(
    row: int, col: int, offset: int, dtype: DType | None, device: Device | None, function: str
) -> Prepared:
    for name, length in (("row", row), ("col", col)):
        if length < 0:
            raise RuntimeError(f"{name} must be non-negative, got{length}")
    kind = int64 if dtype is None else dtype
    if kind.category != INTEGER:
        raise not_implemented(function, kind)
    return (row, col, offset, kind, device)


def tril_indices(
    row: int, col: int, offset: int, dtype: DType | None, device: Device | None
) -> Prepared:
    return _triangle(row, col, offset, dtype, device, "tril_indices")


def triu_indices(
    row: int, col: int, offset: int, dtype: DType | None, device: Device | None
) -> Prepared:
    return _triangle(row, col, offset, dtype, device, "triu_indices")


def _check_floating(dtype: DType, kernel: str) -> None:
    if dtype.category < FLOATING or dtype.is_float8:
        raise not_implemented(kernel, dtype)


def rand(size: Sizes, generator: object, dtype: DType | None, device: Device | None) -> Prepared:
    _check_sizes(size)
    kind = _or_default(dtype)
    _check_floating(kind, "check_uniform_bounds")
    return (size, generator, kind, device)


def randn(size: Sizes, generator: object, dtype: DType | None, device: Device | None) -> Prepared:
    _check_sizes(size)
    kind = _or_default(dtype)
    _check_floating(kind, "normal_kernel_cpu")
    return (size, generator, kind, device)


def check_random_bounds(low: int, high: int, dtype: DType) -> None:
    """RuntimeError unless the integers from `low` to before `high` exist in a dtype."""
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    _check_bounds(low, high, dtype)


def _check_bounds(low: int, high: int, dtype: DType) -> None:
    if dtype.category == COMPLEX:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    if dtype.category == FLOATING:
        if dtype is float16:
            _check_within(low, high, -_LARGEST_HALF, _LARGEST_HALF, dtype)
        return
    least, most = (0, 1) if dtype.category == BOOL else (iinfo(dtype).min, iinfo(dtype).max)
    _check_within(low, high, least, most, dtype)


def _check_within(low: int, high: int, least: int, most: int, dtype: DType) -> None:
    name = _CPP_NAMES[dtype.name]
    if low < least or low > most:
        raise RuntimeError(f"from is out of bounds for {name}")
    if high - 1 < least or high - 1 > most:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


def random_bounds(low: int, high: int, dtype: DType) -> tuple[int, int]:
    """Where integers in [low, high) start and end so that a floating dtype rounds none of them to
    `high` or below `low`; RuntimeError if nothing is left, or the dtype cannot hold them."""
    if low >= high:
        check_random_bounds(low, high, dtype)
    if dtype.category == FLOATING:
        low, high = _first_inside(low, dtype), _end_inside(high, dtype)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={low} >= to={high}"
            )
    check_random_bounds(low, high, dtype)
    return low, high


def _rounded(number: int, dtype: DType) -> int:
    """An integer as a floating dtype represents it: to the nearest, of two the even one."""
    lost = abs(number).bit_length() - _DIGITS[dtype.name]
    if lost <= 0:
        return number
    unit = 1 << lost
    quotient, rest = divmod(abs(number), unit)
    if 2 * rest > unit or (2 * rest == unit and quotient % 2):
        quotient += 1
    return quotient * unit if number > 0 else -quotient * unit


def _step(number: int, dtype: DType) -> int:
    """The distance between numbers of a floating dtype, at an integer beyond the exact ones."""
    return 1 << max(abs(number).bit_length() - _DIGITS[dtype.name], 0)


def _first_inside(low: int, dtype: DType) -> int:
    rounded = _rounded(low + 1, dtype)
    return rounded + _step(low + 1, dtype) if rounded < low else low


def _end_inside(high: int, dtype: DType) -> int:
    rounded = _rounded(high - 1, dtype)
    return rounded - _step(high - 1, dtype) if rounded >= high else high


def randint(
    low: int, high: int, size: Sizes, generator: object, dtype: DType | None, device: Device | None
) -> Prepared:
    _check_sizes(size)
    kind = int64 if dtype is None else dtype
    first, end = random_bounds(low, high, kind)
    return (first, end, size, generator, kind, device)


def randint_high(
    high: int, size: Sizes, generator: object, dtype: DType | None, device: Device | None
) -> Prepared:
    return randint(0, high, size, generator, dtype, device)


def randperm(n: int, generator: object, dtype: DType | None, device: Device | None) -> Prepared:
    _check_sizes((n,))
    kind = int64 if dtype is None else dtype
    if n > 0:
        check_scalar_fits(n, kind)
    return (n, generator, kind, device)


def fill_scalar(self: TensorBase, value: object) -> Prepared:
    return (self, stored_scalar(value, self.dtype))


def fill_tensor(self: TensorBase, value: TensorBase) -> Prepared:
    if ndim_of(value) != 0:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{ndim_of(value)} dimensions."
        )
    # One number is written everywhere, but what PyTorch writes here is a copy of a tensor.
    check_overlap(self, "copy_")
    return (self, to_dtype(value, self.dtype))


def bernoulli(self: TensorBase, generator: object) -> Prepared:
    if self.dtype.category != FLOATING:
        argument = "self" if self.dtype.is_complex else "p"
        raise not_implemented(f"bernoulli_tensor_cpu_{argument}_", self.dtype)
    return (self, generator)


def bernoulli_p(self: TensorBase, p: float, generator: object) -> Prepared:
    return bernoulli_float_(self, p, generator)


def multinomial(
    self: TensorBase, num_samples: int, replacement: bool, generator: object
) -> Prepared:
    if ndim_of(self) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if self.dtype.category != FLOATING:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{self.dtype.scalar_name}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > sizes_of(self)[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    return (self, num_samples, replacement, generator)


def number_text(value: float) -> str:
    """A number as C++ prints it in messages."""
    return f"{value:g}"


def uniform_(self: TensorBase, from_: float, to: float, generator: object) -> Prepared:
    _check_floating(self.dtype, "check_uniform_bounds")
    real = self.dtype.to_real() if self.dtype.is_complex else self.dtype
    most = float(finfo(real).max)
    for name, bound in (("from", from_), ("to", to)):
        if not -most <= bound <= most:
            raise RuntimeError(f"{name} is out of bounds for {_CPP_NAMES[real.name]}")
    if from_ > to:
        raise RuntimeError(
            "uniform_ expects to return a [from, to) range, but found "
            f"from={number_text(from_)} > to={number_text(to)}"
        )
    if to - from_ > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{real.scalar_name}>::max(), but "
            f"found to={number_text(to)} and from={number_text(from_)} which result in to-from to "
            "exceed the limit"
        )
    return (self, from_, to, generator)


def check_std(std: float) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {number_text(std)}")


def normal_(self: TensorBase, mean: float, std: float, generator: object) -> Prepared:
    check_std(std)
    _check_floating(self.dtype, "normal_kernel_cpu")
    return (self, mean, std, generator)


def exponential_(self: TensorBase, lambd: float, generator: object) -> Prepared:
    if self.dtype.category != FLOATING:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {self.dtype.scalar_name}"
        )
    if not lambd > 0:
        raise RuntimeError(
            f"exponential_ expects lambda > 0.0, but found lambda={number_text(lambd)}"
        )
    return (self, lambd, generator)


def bernoulli_float_(self: TensorBase, p: float, generator: object) -> Prepared:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={number_text(p)}")
    if self.dtype.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", self.dtype)
    return (self, p, generator)


def bernoulli_tensor_(self: TensorBase, p: TensorBase, generator: object) -> Prepared:
    if numel_of(self):
        if self.dtype.is_complex:
            raise not_implemented("bernoulli_tensor_cpu_self_", self.dtype)
        if p.dtype.category != FLOATING:
            raise not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    return (self, p, generator)


def random_from_(self: TensorBase, from_: int, to: int | None, generator: object) -> Prepared:
    if to is not None:
        first, end = random_bounds(from_, to, self.dtype)
        return (self, first, end, generator)
    dtype = self.dtype
    if dtype.category == COMPLEX:
        raise RuntimeError(
            "random_from_to_impl handles only integral, floating-point and boolean types"
        )
    if from_ == -(1 << 63):
        if dtype is float16 or dtype.category == BOOL:
            raise not_implemented("random_full_64_bits_range_kernel_cpu", dtype)
        if dtype is not int64 and dtype.category != FLOATING:
            raise RuntimeError(
                "random_full_64_bits_range_kernel_cpu handles only int64, double, float and "
                "bfloat16"
            )
        return (self, from_, 1 << 63, generator)
    first, end = from_, _largest(dtype) + 1
    if dtype is float16 and abs(from_) > _LARGEST_HALF:
        _check_bounds(first, end, dtype)
    if dtype.category == FLOATING:
        first = _first_inside(first, dtype)
        if first >= end - 1:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={first} > to_inc={end - 1}"
            )
    _check_bounds(first, end, dtype)
    return (self, first, end, generator)


def random_to_(self: TensorBase, to: int, generator: object) -> Prepared:
    return random_from_(self, 0, to, generator)


def random_(self: TensorBase, generator: object) -> Prepared:
    if self.dtype.is_float8 or (self.dtype.category == INTEGER and self.dtype.index > int64.index):
        raise not_implemented("random_kernel_cpu", self.dtype)
    if self.dtype.category == COMPLEX:
        raise not_implemented("random_kernel_cpu", self.dtype)
    return (self, 0, _largest(self.dtype) + 1, generator)


def _largest(dtype: DType) -> int:
    if dtype.category == BOOL:
        return 1
    if dtype.category == INTEGER:
        return int(iinfo(dtype).max)
    return 1 << _DIGITS.get(dtype.name, 24)


def check_parts(real: TensorBase, imag: TensorBase) -> None:
    """RuntimeError unless numbers of these dtypes can form a complex number."""
    names = (real.dtype.scalar_name, imag.dtype.scalar_name)
    for part in (real, imag):
        if part.dtype is not float32 and part.dtype is not float64:
            raise RuntimeError(
                "Expected both inputs to be Half, Float or Double tensors but got "
                f"{names[0]} and {names[1]}"
            )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second "
            "argument"
        )


def complex_of_parts(real: TensorBase, imag: TensorBase) -> Prepared:
    check_parts(real, imag)
    return (real, imag)
