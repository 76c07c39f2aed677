"""Arguments of view operators: sizes inferred, dimensions wrapped, PyTorch's errors raised."""

from __future__ import annotations

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.dtype import DType, float16, float32, float64
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.aliasing.layout import storage_offset as storage_offset_of
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.aliasing.strides import check_reach
from plugrad.tensor.base import TensorBase, ndim_of, numel_of, sizes_of

Sizes = tuple[int, ...]


def infer_size(size: Sizes, numel: int) -> Sizes:
    """The shape with -1 replaced by what `numel` elements leave for it.

    Raises:
        RuntimeError: two are -1, one is below, or the elements do not fit.
    """
    unknown = -1
    known = 1
    for position, length in enumerate(size):
        if length >= 0:
            known *= length
        elif length != -1:
            raise RuntimeError(
                f"invalid shape dimension {length} at index {position} of shape {list(size)}"
            )
        elif unknown >= 0:
            raise RuntimeError("only one dimension can be inferred")
        else:
            unknown = position
    if unknown < 0:
        if known == numel:
            return tuple(size)  # kernels take it for a key
    elif known == 0:
        if numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(size)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
    elif numel % known == 0:
        return (*size[:unknown], numel // known, *size[unknown + 1 :])
    raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")


def view(self: TensorBase, size: Sizes) -> tuple[object, ...]:
    return (self, infer_size(size, numel_of(self)))


def check_dims(dims: Sizes, ndim: int, function: str) -> Sizes:
    """A full list of dimensions, wrapped; RuntimeError unless each occurs once."""
    if len(dims) != ndim:
        raise RuntimeError(
            f"{function}: number of dimensions in the tensor input does not match the length of "
            f"the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        )
    seen = 0  # a bit for each dimension
    negative = False
    for dim in dims:
        bit = 1 << wrap_dim(dim, ndim)
        if seen & bit:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen |= bit
        negative = negative or dim < 0
    return tuple([wrap_dim(dim, ndim) for dim in dims]) if negative else tuple(dims)


def permute(self: TensorBase, dims: Sizes) -> tuple[object, ...]:
    return (self, check_dims(dims, ndim_of(self), "permute(sparse_coo)"))


def transpose(self: TensorBase, dim0: int, dim1: int) -> tuple[object, ...]:
    ndim = ndim_of(self)
    return (self, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))


def t(self: TensorBase) -> tuple[object, ...]:
    if ndim_of(self) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {ndim_of(self)}D"
        )
    return (self,)


def squeeze(self: TensorBase) -> tuple[object, ...]:
    return (self, tuple([dim for dim, size in enumerate(sizes_of(self)) if size == 1]))


def squeeze_dim(self: TensorBase, dim: int) -> tuple[object, ...]:
    return squeeze_dims(self, (dim,))


def squeeze_dims(self: TensorBase, dim: Sizes) -> tuple[object, ...]:
    sizes = sizes_of(self)
    dims: list[int] = []
    for item in dim:
        wrapped = wrap_dim(item, len(sizes))
        if wrapped in dims:
            raise RuntimeError(f"dim {wrapped} appears multiple times in the list of dims")
        dims.append(wrapped)
    return (self, tuple([item for item in dims if sizes and sizes[item] == 1]))


def unsqueeze(self: TensorBase, dim: int) -> tuple[object, ...]:
    return (self, wrap_dim(dim, ndim_of(self) + 1))


def expand(self: TensorBase, size: Sizes, implicit: bool) -> tuple[object, ...]:
    """The sizes with -1 replaced; RuntimeError unless the tensor broadcasts to them."""
    old = sizes_of(self)
    added = len(size) - len(old)
    if added < 0:
        raise RuntimeError(
            f"expand({self.dtype.scalar_name}Tensor{{{list(old)}}}, size={list(size)}): the number "
            f"of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(old)})"
        )
    result: list[int] = list(size)
    for position, wanted in enumerate(size):
        if position < added:
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, "
                    f"non-existing dimension {position}"
                )
            continue
        length = old[position - added]
        if wanted == -1:
            result[position] = length
        elif wanted != length and (length != 1 or wanted < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size "
                f"({length}) at non-singleton dimension {position}.  Target sizes: {list(size)}.  "
                f"Tensor sizes: {list(old)}"
            )
    return (self, tuple(result))


def select(self: TensorBase, dim: int, index: int) -> tuple[object, ...]:
    return wrapped_select(self, dim, index)


def wrapped_select(self: TensorBase, dim: int, index: int) -> tuple[TensorBase, int, int]:
    """Dimension and index, counted from the front; IndexError if there is no such element."""
    sizes = sizes_of(self)
    if not sizes:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(sizes))
    length = sizes[dim]
    if index < -length or index >= length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(sizes)} at dimension "
            f"{dim}"
        )
    return (self, dim, index + length if index < 0 else index)


def slice_bounds(start: int | None, end: int | None, length: int) -> tuple[int, int]:
    """Bounds of a slice, counted from the front and within the dimension."""
    first = 0 if start is None else start
    last = length if end is None else end
    if first < 0:
        first = max(first + length, 0)
    if last < 0:
        last += length
    first = min(first, length)
    return first, min(max(last, first), length)


def slice(
    self: TensorBase, dim: int, start: int | None, end: int | None, step: int
) -> tuple[object, ...]:
    place, first, last = wrapped_slice(self, dim, start, end, step)
    return (self, place, first, last, step)


def check_step(step: int) -> None:
    if step <= 0:
        raise RuntimeError("slice step must be positive")


def wrapped_slice(
    self: TensorBase, dim: int, start: int | None, end: int | None, step: int
) -> tuple[int, int, int]:
    """Dimension and bounds, counted from the front; IndexError if there are no dimensions."""
    sizes = sizes_of(self)
    if not sizes:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(sizes))
    check_step(step)
    first, last = slice_bounds(start, end, sizes[dim])
    return dim, first, last


def equal_parts(sizes: Sizes, split_size: int, dim: int) -> tuple[Sizes, int]:
    """The lengths of the parts of `split_size` that a dimension falls into, and the dimension."""
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    dim = wrap_dim(dim, len(sizes))
    length = sizes[dim]
    if split_size == 0:
        if length != 0:
            raise RuntimeError(
                "split_size can only be 0 if dimension size is 0, but got dimension size of "
                f"{length}"
            )
        return (0,), dim
    count = max((length + split_size - 1) // split_size, 1)
    parts = [split_size] * count
    parts[-1] = length - split_size * (count - 1)
    return tuple(parts), dim


def split(self: TensorBase, split_size: int, dim: int) -> tuple[object, ...]:
    parts, wrapped = equal_parts(sizes_of(self), split_size, dim)
    return (self, parts, wrapped)


def split_with_sizes(self: TensorBase, split_sizes: Sizes, dim: int) -> tuple[object, ...]:
    sizes = sizes_of(self)
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(sizes))
    total = 0
    for part in split_sizes:
        if part < 0:
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={list(split_sizes)}"
            )
        total += part
    if total != sizes[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {sizes[dim]} (input tensor's "
            f"size at dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return (self, split_sizes, dim)


def unbind(self: TensorBase, dim: int) -> tuple[object, ...]:
    if ndim_of(self) == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return (self, wrap_dim(dim, ndim_of(self)))


def diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """The two dimensions of the matrices, wrapped; RuntimeError if they are one."""
    first = wrap_dim(dim1, ndim)
    second = wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def near_offset(sizes: Sizes, offset: int, first: int, second: int) -> int:
    """A diagonal's offset; a diagonal far outside gets the nearest empty one's offset."""
    return max(-sizes[first], min(offset, sizes[second]))


def diagonal(self: TensorBase, offset: int, dim1: int, dim2: int) -> tuple[object, ...]:
    first, second = diagonal_dims(ndim_of(self), dim1, dim2)
    return (self, near_offset(sizes_of(self), offset, first, second), first, second)


def check_geometry(size: Sizes, stride: Sizes, storage_offset: int) -> None:
    """RuntimeError unless sizes and strides match and none is negative."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if any(length < 0 for length in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )


def as_strided(
    self: TensorBase,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
    input_stride: Sizes,
    input_offset: int,
) -> tuple[object, ...]:
    check_geometry(size, stride, storage_offset)
    if self._keyset & FUNCTIONALIZE_BIT:
        # Such an array does not show its memory: `self` is all of it.
        itemsize = self.dtype.itemsize
        check_reach(size, stride, storage_offset, itemsize, numel_of(self) * itemsize)
    return (self, size, stride, storage_offset)


def view_dtype(self: TensorBase, dtype: DType) -> tuple[object, ...]:
    """PyTorch's rules: only adjacent elements can be joined or split."""
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return (self, dtype)
    words = f"to view {self.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
    sizes = sizes_of(self)
    if not sizes:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    steps = strides(self)
    if old > new:
        if steps[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {words}, but got {steps[-1]}")
        return (self, dtype)
    ratio = new // old
    if sizes[-1] % ratio:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} {words}, but got {sizes[-1]}"
        )
    offset = storage_offset_of(self)
    if offset % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {words}, but got {offset}"
        )
    if steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {words}, but got {steps[-1]}")
    for dim, step in enumerate(steps[:-1]):
        if step % ratio:
            raise RuntimeError(
                f"self.stride({dim}) must be divisible by {ratio} {words}, but got {step}"
            )
    return (self, dtype)


def view_as_real(self: TensorBase) -> tuple[object, ...]:
    if not self.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return (self,)


def view_as_complex(self: TensorBase) -> tuple[object, ...]:
    if self.dtype is float16:
        raise not_implemented("view_as_complex", float16)
    if self.dtype not in (float32, float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {self.dtype.scalar_name}"
        )
    sizes = sizes_of(self)
    if not sizes:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if sizes[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    steps = strides(self)
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    # How far it is to a next element does not matter where there is none.
    if any(step % 2 and size != 1 for step, size in zip(steps[:-1], sizes, strict=False)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if storage_offset_of(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return (self,)


def select_backward(
    grad_output: TensorBase, input_sizes: Sizes, dim: int, index: int
) -> tuple[object, ...]:
    dim = wrap_dim(dim, len(input_sizes))
    return (grad_output, input_sizes, dim, index + input_sizes[dim] if index < 0 else index)


def slice_backward(
    grad_output: TensorBase,
    input_sizes: Sizes,
    dim: int,
    start: int | None,
    end: int | None,
    step: int,
) -> tuple[object, ...]:
    dim = wrap_dim(dim, len(input_sizes))
    check_step(step)
    first, last = slice_bounds(start, end, input_sizes[dim])
    return (grad_output, input_sizes, dim, first, last, step)


def diagonal_backward(
    grad_output: TensorBase, input_sizes: Sizes, offset: int, dim1: int, dim2: int
) -> tuple[object, ...]:
    first, second = diagonal_dims(len(input_sizes), dim1, dim2)
    near = near_offset(input_sizes, offset, first, second)
    return (grad_output, input_sizes, near, first, second)


def unfolded(
    sizes: Sizes, strides: Sizes, dimension: int, size: int, step: int
) -> tuple[Sizes, Sizes]:
    """Sizes and strides of `unfold`.

    Raises:
        RuntimeError: the windows are longer than the dimension, or `step` is not positive.
    """
    if not sizes:
        wrap_dim(dimension, 1)
        length, stride = 1, 1
    else:
        dimension = wrap_dim(dimension, len(sizes))
        length, stride = sizes[dimension], strides[dimension]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dimension} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not sizes:
        return (size,), (1,)
    windows = (length - size) // step + 1
    return (
        (*sizes[:dimension], windows, *sizes[dimension + 1 :], size),
        (*strides[:dimension], stride * step, *strides[dimension + 1 :], stride),
    )
