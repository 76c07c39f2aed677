"""Arguments of Fourier transforms: dimensions, lengths, normalization, dtypes."""

# Tensor gets `__getitem__` in the class that users see.
# mypy: disable-error-code="index"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from plugrad.dtype import FLOATING, DType, float32, float64, get_default_dtype
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]
Prepared = tuple[object, ...]

# What a transform of n points is divided by: nothing, sqrt(n) or n. The numbers are PyTorch's.
UNSCALED: Final = 0
BY_ROOT_N: Final = 1
BY_N: Final = 2


def c2c(self: TensorBase, dim: Sizes, normalization: int, forward: bool) -> Prepared:
    check_complex(self)
    return (self, _checked_dims(self, dim, "_fft_c2c"), _checked_mode(normalization), forward)


def r2c(self: TensorBase, dim: Sizes, normalization: int, onesided: bool) -> Prepared:
    if self.dtype.is_complex:
        raise RuntimeError(
            f"Only supports floating-point dtypes, but found: {self.dtype.scalar_name}"
        )
    computed_dtype(self.dtype, f"Only supports floating-point dtypes, but found: {_name(self)}")
    dims = _checked_dims(self, dim, "_fft_r2c")
    _check_some(dims, "_fft_r2c")
    return (self, dims, _checked_mode(normalization), onesided)


def c2r(self: TensorBase, dim: Sizes, normalization: int, last_dim_size: int) -> Prepared:
    check_complex(self)
    dims = _checked_dims(self, dim, "_fft_c2r")
    _check_some(dims, "_fft_c2r")
    check_length(last_dim_size)
    found = sizes_of(self)[dims[-1]]
    if found != last_dim_size // 2 + 1:
        raise RuntimeError(
            f"_fft_c2r: expected size {last_dim_size // 2 + 1} in dimension {dims[-1]} for "
            f"last_dim_size={last_dim_size}, but got {found}"
        )
    return (self, dims, _checked_mode(normalization), last_dim_size)


def _name(tensor: TensorBase) -> str:
    return tensor.dtype.scalar_name


def check_complex(self: TensorBase) -> None:
    if not self.dtype.is_complex:
        raise RuntimeError(f"Only supports complex dtypes, but found: {_name(self)}")


def _checked_dims(self: TensorBase, dim: Sizes, name: str) -> Sizes:
    sizes = sizes_of(self)
    dims = tuple([_wrapped(d, len(sizes)) for d in dim])
    _check_unique(dims)
    for d in dims:
        check_length(sizes[d])
    return dims


def _check_some(dims: Sizes, name: str) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _checked_mode(normalization: int) -> int:
    if normalization not in (UNSCALED, BY_ROOT_N, BY_N):
        raise RuntimeError(
            f"normalization must be 0 (none), 1 (by root n) or 2 (by n), but got {normalization}"
        )
    return normalization


def check_length(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _wrapped(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _check_unique(dims: Sizes) -> None:
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")


def computed_dtype(dtype: DType, message: str = "") -> DType:
    """The dtype in which a real or complex tensor is transformed: integers become floats.

    RuntimeError for floats of 16 bits.
    """
    if dtype.is_complex:
        return dtype
    if dtype.category < FLOATING:
        if message:
            raise RuntimeError(message)
        dtype = get_default_dtype()
    if dtype is not float32 and dtype is not float64:
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}")
    return dtype


def promoted(self: Tensor, to_complex: bool = False) -> Tensor:
    """A tensor in the dtype in which it is transformed."""
    dtype = computed_dtype(self.dtype)
    if to_complex:
        dtype = dtype.to_complex()
    return self if self.dtype is dtype else self.to(dtype)


def one_dim(self: TensorBase, dim: int) -> int:
    """A dimension counted from the front; IndexError if there is none such."""
    return _wrapped(dim, len(sizes_of(self)))


def shape_and_dims(
    self: TensorBase, s: Sequence[int] | None, dim: Sequence[int] | None
) -> tuple[list[int], Sizes]:
    """The lengths of a transform of several dimensions, and these, counted from the front."""
    sizes = sizes_of(self)
    ndim = len(sizes)
    dims: Sizes = tuple(range(ndim))
    if dim is not None:
        dims = tuple([_wrapped(d, ndim) for d in dim])
        _check_unique(dims)
    if s is None:
        lengths = [sizes[d] for d in dims]
    else:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions."
            )
        if dim is None:
            dims = tuple(range(ndim - len(s), ndim))
        lengths = [sizes[d] if n == -1 else n for n, d in zip(s, dims, strict=True)]
    for n in lengths:
        check_length(n)
    return lengths, dims


def mode_of(norm: str | None, forward: bool) -> int:
    """What a transform is divided by, of the name that users give it."""
    if norm is None or norm == "backward":
        return UNSCALED if forward else BY_N
    if norm == "forward":
        return BY_N if forward else UNSCALED
    if norm == "ortho":
        return BY_ROOT_N
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def norm_of(mode: int, forward: bool) -> str:
    """What array libraries call a mode, which they see from the forward transform's side."""
    if mode == BY_ROOT_N:
        return "ortho"
    return "backward" if (mode == UNSCALED) == forward else "forward"
