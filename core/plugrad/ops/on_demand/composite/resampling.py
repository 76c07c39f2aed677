"""Resizes images, and reads images at the positions of a grid.

Resampling takes weighted sums of elements, one dimension at a time.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import float32, float64, int32, int64, uint8
from plugrad.memory_format import channels_last
from plugrad.ops.composite.elementwise.precision import in_dtype_of, is_narrow
from plugrad.ops.composite.layers.grid_gradient import (
    grid_sampler_2d_backward as grid_sampler_2d_backward,
)
from plugrad.ops.composite.layers.grid_gradient import (
    grid_sampler_3d_backward as grid_sampler_3d_backward,
)
from plugrad.ops.composite.layers.grid_sampler import affine_grid_generator as affine_grid_generator
from plugrad.ops.composite.layers.grid_sampler import grid_sampler as grid_sampler
from plugrad.ops.composite.layers.grid_sampler import grid_sampler_2d as grid_sampler_2d
from plugrad.ops.composite.layers.grid_sampler import grid_sampler_3d as grid_sampler_3d
from plugrad.ops.composite.layers.taps import (
    Resampling,
    Taps,
    byte_taps,
    taps,
    transposed_taps,
)
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor, zero_like
from plugrad.tensor.aliasing.layout import is_contiguous
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.creation.allocation import check_memory
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]
Floats = tuple[float, ...]

# Above this number of taps, all are read at once rather than one after the other.
_FEW = 4
# The height and width of an image together, up to which it is one of PyTorch's small ones.
_SMALL = 128
# The number of bytes from which on the available memory is checked.
_LARGE = 1 << 28


def resample(
    self: Tensor, output_size: Ints, mode: str, align_corners: bool, scales: Floats
) -> Tensor:
    _check_size(self, output_size)
    if self.dtype is uint8 and not mode.startswith(("nearest", "area")):
        found = _bytes_along_all(self, output_size, mode, align_corners, scales)
    else:
        found = _along_all(taps, self, output_size, mode, align_corners, scales, False)
    return found.clone() if found is self else found


def resample_backward(
    grad_output: Tensor, input_size: Ints, mode: str, align_corners: bool, scales: Floats
) -> Tensor:
    found = _along_all(transposed_taps, grad_output, input_size, mode, align_corners, scales, True)
    return found.clone() if found is grad_output else found


def _check_size(self: TensorBase, output_size: Ints) -> None:
    """RuntimeError if no memory can hold the result, or the places that a line of it reads."""
    elements = math.prod(sizes_of(self)[: self.ndim - len(output_size)]) * math.prod(output_size)
    nbytes = max(elements * self.dtype.itemsize, max(output_size) * int64.itemsize)
    if nbytes > _LARGE:
        check_memory(nbytes)


def _bytes_along_all(
    self: Tensor, sizes: Ints, mode: str, align_corners: bool, scales: Floats
) -> Tensor:
    """Bytes, in whole numbers and rounded after each dimension, the last one first."""
    x: Any = self
    for axis in reversed(range(len(sizes))):
        dim = self.ndim - len(sizes) + axis
        before, after = sizes_of(self)[dim], sizes[axis]
        if before == after:
            continue
        how = Resampling(mode, align_corners, scales[axis], False)
        found, bits = byte_taps(how, before, after)
        total: Any = _apply(F._to_copy(x, int32), dim, found)
        rounded = F.bitwise_right_shift(total + (1 << bits >> 1), bits)
        x = F._to_copy(F.clamp(rounded, 0, 255), uint8)
    return x


def _along_all(
    table: Callable[[Resampling, int, int], Taps],
    self: Tensor,
    sizes: Ints,
    mode: str,
    align_corners: bool,
    scales: Floats,
    back: bool,
) -> Tensor:
    narrow = is_narrow(self.dtype)
    moves = mode.startswith("nearest")
    if not moves and (narrow or self.dtype is uint8):
        x: Any = F._to_copy(self, float32)
    elif back and narrow:
        x = F._to_copy(self, float32)
    else:
        x = self
    leading = self.ndim - len(sizes)
    single = x.dtype is not float64
    # Those first that make the tensor smaller.
    growth = {i: size / max(sizes_of(self)[leading + i], 1) for i, size in enumerate(sizes)}
    for axis in sorted(growth, key=growth.__getitem__):
        dim = leading + axis
        before, after = sizes_of(self)[dim], sizes[axis]
        how = Resampling(mode, align_corners, scales[axis], single)
        if before == after and (mode.startswith("area") or scales[axis] in (0.0, 1.0)):
            # PyTorch keeps a line of the same length as it is.
            continue
        pair = (after, before) if back else (before, after)
        x = _apply(x, dim, table(how, *pair))
    if self.dtype is uint8 and x.dtype is not uint8:
        return F._to_copy(F.clamp(F.round(x), 0, 255), uint8)
    return in_dtype_of(x, self)


def _apply(x: Tensor, dim: int, found: Taps) -> Tensor:
    count, length = found.indices.shape
    behind = (1,) * (x.ndim - dim - 1)
    if count > _FEW:
        shape = sizes_of(x)
        read = x.index_select(dim, index_tensor(found.indices.reshape(-1), x))
        read = read.reshape((*shape[:dim], count, length, *shape[dim + 1 :]))
        return _weighted(read, found.weights, found.valid, behind).sum(dim=(dim,), dtype=x.dtype)
    total: Any = None
    for tap in range(count):
        part: Any = x.index_select(dim, index_tensor(found.indices[tap], x))
        weights = None if found.weights is None else found.weights[tap]
        valid = None if found.valid is None else found.valid[tap]
        part = _weighted(part, weights, valid, behind)
        total = part if total is None else total + part
    return total


def _weighted(read: Tensor, weights: Any, valid: Any, behind: Ints) -> Tensor:
    if weights is not None:
        numbers = weights.reshape((*weights.shape, *behind)).astype(read.dtype.numpy)
        read = read * from_host(np.ascontiguousarray(numbers), read.dtype, read.device)
    if valid is not None and not valid.all():
        mask = mask_tensor(valid.reshape((*valid.shape, *behind)), read)
        read = F.where(mask, read, zero_like(read))
    return read


def _wanted_size(input: TensorBase, given: Ints | None, factors: Floats | None) -> Ints:
    """The size that the arguments of an overload `vec` request."""
    if (given is None) == (factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    sizes = sizes_of(input)
    spatial = len(sizes) - 2
    if given is not None:
        if len(given) != spatial:
            raise RuntimeError(
                f"output_size must have one entry for each of the {spatial} spatial dimensions of "
                f"the input, but got {list(given)}"
            )
        return given
    assert factors is not None
    if len(factors) != spatial:
        raise RuntimeError(
            f"scale_factors must have one entry for each of the {spatial} spatial dimensions of "
            f"the input, but got {list(factors)}"
        )
    return tuple([int(size * factor) for size, factor in zip(sizes[2:], factors, strict=True)])


_NAMES = ("", "W", "HW", "DHW")


def _checked(name: str, input: TensorBase, size: Ints, spatial: int, mode: str) -> None:
    sizes = sizes_of(input)
    if len(size) != spatial:
        raise RuntimeError(
            f"It is expected output_size equals to {spatial}, but got size {len(size)}"
        )
    if len(sizes) != spatial + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {spatial + 2}, but got size {len(sizes)}"
        )
    if min(sizes[2:]) <= 0 or min(size) <= 0:
        before = ", ".join(f"{n}: {s}" for n, s in zip(_NAMES[spatial], sizes[2:], strict=True))
        after = ", ".join(f"{n}: {s}" for n, s in zip(_NAMES[spatial], size, strict=True))
        between = "" if spatial == 2 else "and "
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({before}) {between}output ({after})"
        )
    if min(sizes[1:]) <= 0:
        raise RuntimeError(
            f"Non-empty {spatial + 2}D data tensor expected but got a tensor with sizes "
            f"{list(sizes)}"
        )
    dtype = input.dtype
    bytes_too = mode.startswith("nearest") or (spatial == 2 and mode != "area")
    averages = mode.endswith("-aa")
    if not (dtype.is_floating_point or (dtype is uint8 and bytes_too)) or (
        averages and is_narrow(dtype)
    ):
        raise not_implemented(name, dtype)


class _Sized:
    """The three operators of one mode and one number of dimensions.

    Their names and arguments are PyTorch's: by the size of the result, by size or scale factors
    ("vec"), and the gradient.
    """

    def __init__(self, name: str, mode: str, spatial: int, aligns: bool) -> None:
        self.name = name
        self.mode = mode
        self.spatial = spatial
        self.aligns = aligns

    def by_size(self, input: Tensor, output_size: Ints, *rest: Any) -> Tensor:
        align_corners, scales = self._split(rest)
        _checked(self.name, input, output_size, self.spatial, self.mode)
        if self.mode == "nearest" and self.spatial == 2 and _ignores_scales(input, output_size):
            sizes = zip(sizes_of(input)[2:], output_size, scales, strict=True)
            scales = tuple([0.0 if new in (old, 2 * old) else s for old, new, s in sizes])
        return F._resample(input, output_size, self.mode, align_corners, scales)

    def vec(self, input: Tensor, output_size: Ints | None, *rest: Any) -> Tensor:
        factors: Floats | None = rest[-1]
        size = _wanted_size(input, output_size, factors)
        scales = (0.0,) * len(size) if factors is None else factors
        operator: Any = getattr(F, self.name)
        return operator(input, size, *rest[:-1], *scales)

    def backward(
        self, grad_output: Tensor, output_size: Ints, input_size: Ints, *rest: Any
    ) -> Tensor:
        align_corners, scales = self._split(rest)
        wanted = (*input_size[:2], *output_size)
        if sizes_of(grad_output) != wanted:
            raise RuntimeError(
                f"{self.name}_backward: Expected grad_output of shape {list(wanted)}, but got "
                f"{list(sizes_of(grad_output))}"
            )
        return F._resample_backward(grad_output, input_size[2:], self.mode, align_corners, scales)

    def _split(self, rest: tuple[Any, ...]) -> tuple[bool, Floats]:
        scales = rest[1:] if self.aligns else rest
        return self.aligns and rest[0], tuple([0.0 if s is None else s for s in scales])


def _ignores_scales(image: Tensor, output_size: Ints) -> bool:
    """Whether PyTorch ignores the scale of a dimension that keeps or doubles its size: one of its
    two kernels for nearest pixels does."""
    if sum(output_size) <= _SMALL:
        return True
    return sizes_of(image)[1] > 3 and is_contiguous(image, channels_last)


def _operators(name: str, mode: str, spatial: int) -> tuple[Callable[..., Tensor], ...]:
    made = _Sized(name, mode, spatial, not mode.startswith("nearest"))
    return made.by_size, made.vec, made.backward


# Declared, because the modules import each other and mypyc needs the types.
upsample_nearest1d: Callable[..., Tensor]
upsample_nearest1d_vec: Callable[..., Tensor]
upsample_nearest1d_backward: Callable[..., Tensor]
upsample_nearest2d: Callable[..., Tensor]
upsample_nearest2d_vec: Callable[..., Tensor]
upsample_nearest2d_backward: Callable[..., Tensor]
upsample_nearest3d: Callable[..., Tensor]
upsample_nearest3d_vec: Callable[..., Tensor]
upsample_nearest3d_backward: Callable[..., Tensor]
_upsample_nearest_exact1d: Callable[..., Tensor]
_upsample_nearest_exact1d_vec: Callable[..., Tensor]
_upsample_nearest_exact1d_backward: Callable[..., Tensor]
_upsample_nearest_exact2d: Callable[..., Tensor]
_upsample_nearest_exact2d_vec: Callable[..., Tensor]
_upsample_nearest_exact2d_backward: Callable[..., Tensor]
_upsample_nearest_exact3d: Callable[..., Tensor]
_upsample_nearest_exact3d_vec: Callable[..., Tensor]
_upsample_nearest_exact3d_backward: Callable[..., Tensor]
upsample_linear1d: Callable[..., Tensor]
upsample_linear1d_vec: Callable[..., Tensor]
upsample_linear1d_backward: Callable[..., Tensor]
upsample_bilinear2d: Callable[..., Tensor]
upsample_bilinear2d_vec: Callable[..., Tensor]
upsample_bilinear2d_backward: Callable[..., Tensor]
upsample_trilinear3d: Callable[..., Tensor]
upsample_trilinear3d_vec: Callable[..., Tensor]
upsample_trilinear3d_backward: Callable[..., Tensor]
upsample_bicubic2d: Callable[..., Tensor]
upsample_bicubic2d_vec: Callable[..., Tensor]
upsample_bicubic2d_backward: Callable[..., Tensor]
_upsample_bilinear2d_aa: Callable[..., Tensor]
_upsample_bilinear2d_aa_vec: Callable[..., Tensor]
_upsample_bilinear2d_aa_backward: Callable[..., Tensor]
_upsample_bicubic2d_aa: Callable[..., Tensor]
_upsample_bicubic2d_aa_vec: Callable[..., Tensor]
_upsample_bicubic2d_aa_backward: Callable[..., Tensor]
_upsample_lanczos2d_aa: Callable[..., Tensor]
_upsample_lanczos2d_aa_vec: Callable[..., Tensor]
_upsample_lanczos2d_aa_backward: Callable[..., Tensor]
upsample_nearest1d, upsample_nearest1d_vec, upsample_nearest1d_backward = _operators(
    "upsample_nearest1d", "nearest", 1
)
upsample_nearest2d, upsample_nearest2d_vec, upsample_nearest2d_backward = _operators(
    "upsample_nearest2d", "nearest", 2
)
upsample_nearest3d, upsample_nearest3d_vec, upsample_nearest3d_backward = _operators(
    "upsample_nearest3d", "nearest", 3
)
_upsample_nearest_exact1d, _upsample_nearest_exact1d_vec, _upsample_nearest_exact1d_backward = (
    _operators("_upsample_nearest_exact1d", "nearest-exact", 1)
)
_upsample_nearest_exact2d, _upsample_nearest_exact2d_vec, _upsample_nearest_exact2d_backward = (
    _operators("_upsample_nearest_exact2d", "nearest-exact", 2)
)
_upsample_nearest_exact3d, _upsample_nearest_exact3d_vec, _upsample_nearest_exact3d_backward = (
    _operators("_upsample_nearest_exact3d", "nearest-exact", 3)
)
upsample_linear1d, upsample_linear1d_vec, upsample_linear1d_backward = _operators(
    "upsample_linear1d", "linear", 1
)
upsample_bilinear2d, upsample_bilinear2d_vec, upsample_bilinear2d_backward = _operators(
    "upsample_bilinear2d", "linear", 2
)
upsample_trilinear3d, upsample_trilinear3d_vec, upsample_trilinear3d_backward = _operators(
    "upsample_trilinear3d", "linear", 3
)
upsample_bicubic2d, upsample_bicubic2d_vec, upsample_bicubic2d_backward = _operators(
    "upsample_bicubic2d", "cubic", 2
)
_upsample_bilinear2d_aa, _upsample_bilinear2d_aa_vec, _upsample_bilinear2d_aa_backward = _operators(
    "_upsample_bilinear2d_aa", "linear-aa", 2
)
_upsample_bicubic2d_aa, _upsample_bicubic2d_aa_vec, _upsample_bicubic2d_aa_backward = _operators(
    "_upsample_bicubic2d_aa", "cubic-aa", 2
)
_upsample_lanczos2d_aa, _upsample_lanczos2d_aa_vec, _upsample_lanczos2d_aa_backward = _operators(
    "_upsample_lanczos2d_aa", "lanczos-aa", 2
)
