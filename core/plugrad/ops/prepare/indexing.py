"""Arguments of indexing operators: index dtypes and shapes checked, dimensions wrapped.

Only the kernels can see whether the indices themselves are in range.
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch.backends.kernel_errors import OUTSIDE_EMPTY, unlike_indices
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dtype import DType, bool_, int32, int64, uint8
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, ndim_of, numel_of, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import SHORT_CPP_NAMES
from plugrad.tensor.calls.promotion import stored_scalar, to_dtype

Sizes = tuple[int, ...]

_INDEX_DTYPES: Final = (int64, int32)


def _with_a_dim(sizes: Sizes) -> Sizes:
    return sizes if sizes else (1,)


def _check_index(function: str, self: TensorBase, dim: int, index: TensorBase) -> None:
    """For gather and scatter: dtype, number of dimensions, and sizes apart from `dim`."""
    if numel_of(index) and index.dtype not in _INDEX_DTYPES:
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index")


def gather(self: TensorBase, dim: int, index: TensorBase, sparse_grad: bool) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    _check_index("gather", self, wrapped, index)
    if numel_of(index):
        own = _with_a_dim(sizes_of(self))
        wanted = _with_a_dim(sizes_of(index))
        if len(own) != len(wanted):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        for place, size in enumerate(wanted):
            if place != wrapped and size > own[place]:
                raise RuntimeError(
                    f"Size does not match at dimension {place} expected index "
                    f"{list(sizes_of(index))} to be no larger than self {list(sizes_of(self))} "
                    f"apart from dimension {wrapped}"
                )
    return (self, wrapped, index)


def check_scatter(self: TensorBase, dim: int, index: TensorBase, src: TensorBase | None) -> int:
    """The dimension, counted from the front, if the shapes and dtypes fit each other."""
    wrapped = wrap_dim(dim, ndim_of(self))
    _check_index("scatter", self, wrapped, index)
    if src is not None and src.dtype is not self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if numel_of(index) == 0:
        return wrapped
    own = _with_a_dim(sizes_of(self))
    wanted = _with_a_dim(sizes_of(index))
    if len(own) != len(wanted):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    given = wanted if src is None else _with_a_dim(sizes_of(src))
    if len(given) != len(wanted):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for place, size in enumerate(wanted):
        if (place != wrapped and size > own[place]) or size > given[place]:
            shown = (
                "" if src is None else f" and to be no larger size than src {list(sizes_of(src))}"
            )
            raise RuntimeError(
                f"Expected index {list(sizes_of(index))} to be no larger than self "
                f"{list(sizes_of(self))} apart from dimension {wrapped}{shown}"
            )
    return wrapped


def scatter(self: TensorBase, dim: int, index: TensorBase, src: TensorBase) -> tuple[object, ...]:
    return (self, check_scatter(self, dim, index, src), index, src)


def scatter_value(
    self: TensorBase, dim: int, index: TensorBase, value: object
) -> tuple[object, ...]:
    wrapped = check_scatter(self, dim, index, None)
    return (self, wrapped, index, stored_scalar(value, self.dtype))


def index_select(self: TensorBase, dim: int, index: TensorBase) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    if ndim_of(index) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in _INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if ndim_of(self) == 0 and numel_of(index) != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {numel_of(index)} value(s)"
        )
    return (self, wrapped, index)


def index_add(
    self: TensorBase, dim: int, index: TensorBase, source: TensorBase, alpha: object
) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    if ndim_of(index) > 1:
        raise IndexError(
            "index_add_(): Index is supposed to be a vector, but got dim: "
            f"{ndim_of(index)} with type: "
            f"{index.dtype.scalar_name} and size: {list(sizes_of(index))}"
        )
    if index.dtype not in _INDEX_DTYPES:
        raise RuntimeError(
            f"index_add_(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"index_add_(): self ({self.dtype.scalar_name}) and source "
            f"({source.dtype.scalar_name}) must have the same scalar type"
        )
    given, own = sizes_of(source), sizes_of(self)
    if given and wrapped >= len(given):
        raise RuntimeError(
            f"index_add_(): Indexing dim {wrapped} is out of bounds of the source tensor with dim "
            f"{len(given)}"
        )
    count = given[wrapped] if given else 1
    if numel_of(index) != count:
        raise RuntimeError(
            f"index_add_(): Number of indices ({numel_of(index)}) should be equal to "
            f"source.size(dim): ({count}), for dim: {wrapped}"
        )
    if len(own) != len(given) or (
        own[:wrapped] + own[wrapped + 1 :] != given[:wrapped] + given[wrapped + 1 :]
    ):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(sizes_of(self))} source.shape = {list(sizes_of(source))}"
        )
    return (self, wrapped, index, source, alpha)


def index_copy(
    self: TensorBase, dim: int, index: TensorBase, source: TensorBase
) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    if ndim_of(index) > 1:
        raise IndexError(
            f"index_copy_(): Index should have dimension 1 or 0 (got {ndim_of(index)})"
        )
    if index.dtype is not int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{self.dtype.scalar_name} and (source) {source.dtype.scalar_name}"
        )
    if ndim_of(self) != ndim_of(source) and ndim_of(self) != 0 and ndim_of(source) != 0:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({ndim_of(source)}), destination dimensionality "
            f"({ndim_of(self)})"
        )
    if ndim_of(source) == 0 and numel_of(index) != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{numel_of(index)})"
        )
    own = _with_a_dim(sizes_of(self))
    given = _with_a_dim(sizes_of(source))
    own_slice = own[:wrapped] + own[wrapped + 1 :]
    given_slice = given[:wrapped] + given[wrapped + 1 :]
    if own_slice != given_slice:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, own_slice))} at dimension {wrapped} and source slice "
            f"shape: {' '.join(map(str, given_slice))} at dimension {wrapped}."
        )
    if numel_of(index) != given[wrapped]:
        raise IndexError(
            f"index_copy_(): Number of indices ({numel_of(index)}) should be equal to "
            f"source.size(dim) ({given[wrapped]})"
        )
    return (self, wrapped, index, source)


def _check_index_fill(self: TensorBase, dim: int, index: TensorBase) -> int:
    wrapped = wrap_dim(dim, ndim_of(self))
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if ndim_of(index) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return wrapped


def index_fill_scalar(
    self: TensorBase, dim: int, index: TensorBase, value: object
) -> tuple[object, ...]:
    if isinstance(value, complex) and not self.dtype.is_complex:
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    wrapped = _check_index_fill(self, dim, index)
    return (self, wrapped, index, stored_scalar(value, self.dtype))


def index_fill(
    self: TensorBase, dim: int, index: TensorBase, value: TensorBase
) -> tuple[object, ...]:
    if ndim_of(value) != 0:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{ndim_of(value)} dimension(s)."
        )
    wrapped = _check_index_fill(self, dim, index)
    return (self, wrapped, index, to_dtype(value, self.dtype))


def check_indices(self: TensorBase, indices: list[TensorBase | None]) -> list[TensorBase | None]:
    """Index tensors that fit the tensor, bytes turned into masks, missing ones left out at the end.

    Raises:
        IndexError: too many, of a dtype that cannot index, or masks of another shape.
    """
    sizes = sizes_of(self)
    checked: list[TensorBase | None] = []
    place = 0
    used = sum([_dims_taken(index) for index in indices])
    if used > len(sizes):
        raise IndexError(f"too many indices for tensor of dimension {len(sizes)} (got {used})")
    for index in indices:
        if index is None:
            place += 1
        elif index.dtype is bool_ or index.dtype is uint8:
            if index.dtype is uint8:
                warn_at_caller(
                    "indexing with dtype plugrad.uint8 is now deprecated, please use a dtype "
                    "plugrad.bool instead."
                )
                index = to_dtype(index, bool_)
            shape = sizes_of(index)
            if shape != sizes[place : place + len(shape)]:
                wrong = next(i for i, n in enumerate(shape) if n != sizes[place + i])
                raise IndexError(
                    f"The shape of the mask {list(shape)} at index {wrong} does not match the "
                    f"shape of the indexed tensor {list(sizes)} at index {place + wrong}"
                )
            place += len(shape)
        elif index.dtype in _INDEX_DTYPES:
            place += 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        checked.append(index)
    if all(index is None for index in checked):
        raise IndexError("at least one index must be provided")
    return checked


def _dims_taken(index: TensorBase | None) -> int:
    if index is None or (index.dtype is not bool_ and index.dtype is not uint8):
        return 1
    return ndim_of(index)


def index(self: TensorBase, indices: list[TensorBase | None]) -> tuple[object, ...]:
    return (self, check_indices(self, indices))


def index_put(
    self: TensorBase, indices: list[TensorBase | None], values: TensorBase, accumulate: bool
) -> tuple[object, ...]:
    checked = check_indices(self, indices)
    if values.dtype is not self.dtype:
        if not accumulate and numel_of(values) == 1 and _is_one_mask(indices):
            # One value where a mask is true is a fill, which casts.
            return (self, checked, to_dtype(values, self.dtype), False)
        _check_shapes(self, checked)
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the "
            "source."
        )
    return (self, checked, values, accumulate)


def _check_shapes(self: TensorBase, checked: list[TensorBase | None]) -> None:
    """A kernel's requirements on indices before it reads their elements.

    Raises:
        IndexError: there is one for a dimension without elements, or they do not broadcast.
    """
    place = 0
    shapes: list[Sizes] = []
    for index in checked:
        if index is None or index.dtype is bool_:
            place += _dims_taken(index)
            continue
        if sizes_of(self)[place] == 0 and numel_of(index):
            raise IndexError(OUTSIDE_EMPTY)
        shapes.append(sizes_of(index))
        place += 1
    together: Sizes = ()
    try:
        for shape in shapes:
            together = broadcast_shapes(together, shape)
    except RuntimeError:
        raise unlike_indices(shapes) from None


def _is_one_mask(indices: list[TensorBase | None]) -> bool:
    given = [index for index in indices if index is not None]
    return len(given) == 1 and given[0].dtype is bool_


def _check_mask(mask: TensorBase, function: str, names: dict[str, str] | None = None) -> None:
    if mask.dtype is not bool_:
        name = mask.dtype.scalar_name if names is None else names[mask.dtype.name]
        raise RuntimeError(
            f"{function} only supports boolean masks, but got mask with dtype {name}"
        )


def masked_fill_scalar(self: TensorBase, mask: TensorBase, value: object) -> tuple[object, ...]:
    _check_mask(mask, "masked_fill_", SHORT_CPP_NAMES)
    broadcast_shapes(sizes_of(self), sizes_of(mask))
    return (self, mask, stored_scalar(value, self.dtype))


def masked_fill(self: TensorBase, mask: TensorBase, value: TensorBase) -> tuple[object, ...]:
    _check_mask(mask, "masked_fill_", SHORT_CPP_NAMES)
    _check_fill_value(self.dtype, value)
    broadcast_shapes(sizes_of(self), sizes_of(mask))
    return (self, mask, to_dtype(value, self.dtype))


def _check_fill_value(dtype: DType, value: TensorBase) -> None:
    if ndim_of(value) != 0:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{ndim_of(value)} dimension(s)."
        )
    if value.dtype.is_complex and not dtype.is_complex:
        raise RuntimeError(
            f"value cannot be converted to type {SHORT_CPP_NAMES[dtype.name]} without overflow"
        )


def _check_output(self: TensorBase, mask: TensorBase) -> None:
    sizes = sizes_of(self)
    shape = broadcast_shapes(sizes, sizes_of(mask))
    if shape != sizes:
        raise RuntimeError(
            f"output with shape {list(sizes)} doesn't match the broadcast shape {list(shape)}"
        )


def masked_fill_scalar_(self: TensorBase, mask: TensorBase, value: object) -> tuple[object, ...]:
    _check_output(self, mask)
    return masked_fill_scalar(self, mask, value)


def masked_fill_(self: TensorBase, mask: TensorBase, value: TensorBase) -> tuple[object, ...]:
    _check_output(self, mask)
    return masked_fill(self, mask, value)


def masked_select(self: TensorBase, mask: TensorBase) -> tuple[object, ...]:
    if mask.dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_shapes(sizes_of(self), sizes_of(mask))
    return (self, mask)


def masked_scatter(self: TensorBase, mask: TensorBase, source: TensorBase) -> tuple[object, ...]:
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype.scalar_name} and {source.dtype.scalar_name}"
        )
    _check_mask(mask, "masked_scatter_")
    broadcast_shapes(sizes_of(self), sizes_of(mask))
    return (self, mask, source)


def take(self: TensorBase, index: TensorBase) -> tuple[object, ...]:
    if index.dtype is not int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if numel_of(self) == 0 and numel_of(index) != 0:
        raise IndexError("take(): tried to take from an empty tensor")
    return (self, index)


def nonzero(self: TensorBase) -> tuple[Any, ...]:
    return (self,)


def searchsorted(
    sorted_sequence: TensorBase,
    self: TensorBase,
    right: bool,
    side: str | None,
    sorter: TensorBase | None,
) -> None:
    """Raise what PyTorch does about arguments that do not fit each other."""
    name = "torch.searchsorted()"
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"{name}: side and right can't be set to opposites, got side of left while right was "
            "True"
        )
    row, sizes = sizes_of(sorted_sequence), sizes_of(self)
    if not row:
        raise RuntimeError(
            f"{name}: boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if len(row) > 1:
        if not sizes:
            raise RuntimeError(
                f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, "
                f"but we got boundaries tensor dim({len(row)}) and input value's dim(0) numel(1)"
            )
        if row[:-1] != sizes[:-1]:
            raise RuntimeError(
                f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                "boundaries tensor and input value tensor must match, but we got boundaries tensor "
                f"{list(row)} and input value tensor {list(sizes)}"
            )
    if sorter is not None:
        if sizes_of(sorter) != row:
            raise RuntimeError(
                f"{name}: boundary and sorter must have the same size, but got boundary tensor "
                f"{list(row)}and got sorter tensor {list(sizes_of(sorter))}"
            )
        if sorter.dtype is not int64:
            raise RuntimeError(
                f"{name}: sorter must be a tensor of long dtype but got dtype "
                f"{sorter.dtype.scalar_name}"
            )
