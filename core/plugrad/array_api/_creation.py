"""Functions of the standard that make arrays."""

from __future__ import annotations

# Interpreted: loaded on demand.
from math import ceil
from typing import Any

import numpy as np

from plugrad.array_api._array import publish
from plugrad.array_api._manipulation import stack
from plugrad.array_api._operators import F, Tensor
from plugrad.dtype import INTEGER, DType
from plugrad.tensor.creation import from_data
from plugrad.tensor.interop import dlpack

Shape = int | tuple[int, ...]


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _has_tensors(obj: Any) -> bool:
    return isinstance(obj, (list, tuple)) and any(
        isinstance(each, Tensor) or _has_tensors(each) for each in obj
    )


def _of_buffer(obj: Any, copy: bool | None) -> Any:
    """A buffer with the dtype and the shape that it has, where PyTorch reads its bytes as numbers
    of the default dtype; anything else as it is."""
    try:
        view = memoryview(obj)
    except TypeError:
        return obj
    array = np.asarray(view)
    return array.copy() if view.readonly and copy is None else array


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """An array of numbers, nested sequences of numbers and arrays, a buffer, or another array.

    Arrays in a sequence stay in the graph: their gradients flow through the result.

    Args:
        copy: True always copies, False raises ValueError instead, None copies where it must.

    >>> from plugrad import array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float64)
    Array([[1., 2.],
           [3., 4.]], dtype=plugrad.float64)
    """
    if _has_tensors(obj):
        if copy is False:
            raise ValueError("asarray(): a sequence of arrays cannot become one without a copy")
        made = stack([asarray(each, device=device) for each in obj])
        return made if dtype is None else made.to(dtype)
    if isinstance(obj, (bool, int, float, complex)) and copy is False:
        raise ValueError("asarray(): a number cannot become an array without a copy")
    if not (isinstance(obj, (Tensor, list, tuple)) or hasattr(obj, "__array__")):
        obj = _of_buffer(obj, copy)
    if isinstance(obj, np.ndarray) and copy is not False and min(obj.strides, default=0) < 0:
        obj, copy = obj.copy(), None  # tensors have no negative strides
    array: Tensor = from_data.asarray(obj, dtype=dtype, device=device, copy=copy)
    return array


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    """Numbers from `start` to before `stop`; from 0 to before `start` if that is all.

    >>> from plugrad import array_api as xp
    >>> xp.arange(2, 10, 3)
    Array([2, 5, 8])
    """
    if stop is None:
        start, stop = 0, start
    if ceil((stop - start) / step) <= 0:
        whole = all(isinstance(number, int) for number in (start, stop, step))
        if dtype is None and whole:
            return F.arange(0, device=device)
        return F.empty((0,), dtype=dtype, device=device)
    return F.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of any values.

    >>> from plugrad import array_api as xp
    >>> xp.empty((2, 3)).shape
    plugrad.Size([2, 3])
    """
    return F.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of zeros.

    >>> from plugrad import array_api as xp
    >>> xp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]])
    """
    return F.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of ones.

    >>> from plugrad import array_api as xp
    >>> xp.ones(3)
    Array([1., 1., 1.])
    """
    return F.ones(_sizes(shape), dtype=dtype, device=device)


def full(
    shape: Shape, fill_value: complex, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """An array of one number.

    >>> from plugrad import array_api as xp
    >>> xp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]])
    """
    return F.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of the same shape and dtype, of any values.

    >>> from plugrad import array_api as xp
    >>> xp.empty_like(xp.ones((2, 3))).shape
    plugrad.Size([2, 3])
    """
    return F.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of the same shape and dtype, of zeros.

    >>> from plugrad import array_api as xp
    >>> xp.zeros_like(xp.asarray([1, 2]))
    Array([0, 0])
    """
    return F.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of the same shape and dtype, of ones.

    >>> from plugrad import array_api as xp
    >>> xp.ones_like(xp.asarray([1.5, 2.5]))
    Array([1., 1.])
    """
    return F.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: complex, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """An array of the same shape and dtype, of one number.

    >>> from plugrad import array_api as xp
    >>> xp.full_like(xp.asarray([1, 2]), 7)
    Array([7, 7])
    """
    return F.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    """A matrix of zeros, with ones on its `k`-th diagonal.

    >>> from plugrad import array_api as xp
    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return F.eye(n_rows, columns, dtype=dtype, device=device)
    rows = F.arange(n_rows, device=device).unsqueeze(1) + k
    kind = F.zeros((), dtype=dtype).dtype
    return (rows == F.arange(columns, device=device)).to(kind)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers in equal steps from `start` to `stop`, or to one step before it.

    >>> from plugrad import array_api as xp
    >>> xp.linspace(0.0, 1.0, 5)
    Array([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    made = F.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    if made.dtype.category == INTEGER:  # computed in float64, which does not hold every integer
        for index, end in ((0, start), (-1, stop)):
            if made.numel() > -index and isinstance(end, int):
                made[index] = end
    return made if endpoint else made[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Arrays of the coordinates of a grid, from the coordinates along its axes.

    >>> from plugrad import array_api as xp
    >>> x, y = xp.meshgrid(xp.arange(3), xp.arange(2))
    >>> x, y
    (Array([[0, 1, 2],
           [0, 1, 2]]), Array([[0, 0, 0],
           [1, 1, 1]]))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', got {indexing!r}")
    return tuple(F.meshgrid(arrays, indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to the `k`-th diagonal; zeros elsewhere.

    >>> from plugrad import array_api as xp
    >>> xp.tril(xp.ones((2, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    return F.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from the `k`-th diagonal on; zeros elsewhere.

    >>> from plugrad import array_api as xp
    >>> xp.triu(xp.ones((2, 3)), k=1)
    Array([[0., 1., 1.],
           [0., 0., 1.]])
    """
    return F.triu(x, k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array that shares the memory of another library's.

    >>> from plugrad import array_api as xp
    >>> import numpy as np
    >>> x = np.zeros(2)
    >>> y = xp.from_dlpack(x)
    >>> x[0] = 5
    >>> y
    Array([5., 0.], dtype=plugrad.float64)
    """
    made: Any = dlpack.from_dlpack(x, device=device, copy=copy)
    return made  # type: ignore[no-any-return]  # a TensorBase that is a Tensor


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """An array in another dtype, by default always a new one.

    >>> from plugrad import array_api as xp
    >>> xp.astype(xp.asarray([1.5, -1.5]), xp.int64)
    Array([ 1, -1])
    """
    if not isinstance(dtype, DType):
        raise TypeError(f"astype(): dtype must be plugrad.dtype, not {dtype!r}")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


publish(globals())
