"""plugrad.functional: operators that PyTorch wraps in functions of Python.

They take any number of tensors, or give another number of results for other options. All are at the
top level of `plugrad`, too.

>>> import plugrad
>>> plugrad.functional.unique(plugrad.tensor([3, 1, 3]))
tensor([1, 3])
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.caller import warn_at_caller
from plugrad.return_types import result_type
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import int_list_argument, raise_argument_error, type_name
from plugrad.tensor.calls.outputs import write_out
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, override_call

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = [
    "block_diag",
    "cartesian_prod",
    "chain_matmul",
    "histogramdd",
    "unique",
    "unique_consecutive",
    "unravel_index",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal, and zeros elsewhere.

    A vector counts as one row. Dtypes promote. Without tensors the result is (1, 0).

    Raises:
        RuntimeError: a tensor has more than two dimensions.

    >>> import plugrad
    >>> plugrad.block_diag(plugrad.tensor([[1, 2], [3, 4]]), plugrad.tensor([5]))
    tensor([[1, 2, 0],
            [3, 4, 0],
            [0, 0, 5]])
    """
    found: Tensor = _of_tensors(block_diag, F._block_diag, tensors)
    return found


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, as rows, in the order of loops.

    Sizes n, m, ... give (n * m * ..., count of vectors); a single vector is given back.

    Raises:
        RuntimeError: a tensor is not a vector, or dtypes differ.

    >>> import plugrad
    >>> plugrad.cartesian_prod(plugrad.tensor([1, 2]), plugrad.tensor([4, 5]))
    tensor([[1, 4],
            [1, 5],
            [2, 4],
            [2, 5]])
    """
    found: Tensor = _of_tensors(cartesian_prod, F._cartesian_prod, tensors)
    return found


def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of matrices, in the order that needs the fewest multiplications.

    Deprecated, as in PyTorch: use `plugrad.linalg.multi_dot`, which takes a list.

    Raises:
        RuntimeError: there is no matrix, or sizes do not fit.

    >>> import plugrad
    >>> plugrad.chain_matmul(plugrad.ones(2, 3), plugrad.ones(3, 1)).tolist()
    [[3.0], [3.0]]
    """
    warn_at_caller(
        "plugrad.chain_matmul is deprecated: use plugrad.linalg.multi_dot, which accepts a list of "
        "two or more tensors",
    )
    found: Tensor = _of_tensors(chain_matmul, F._chain_matmul, matrices)
    if out is None:
        return found
    result: Any = found
    if len(matrices) == 1 and isinstance(out, TensorBase):
        # A copy is converted; products are not.
        result = result.to(out.dtype)
    written: Any = write_out("chain_matmul", out, result)
    product: Tensor = written
    return product


def _of_tensors(public: Any, function: Any, tensors: Sequence[Any]) -> Any:
    """Call an operator on a list with tensors that were passed one by one, or as one list."""
    if OVERRIDES.active:
        handled = override_call(public, tuple(tensors), tuple(tensors), {})
        if handled is not PROCEED:
            return handled
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    return function(list(tensors))


@explains
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements of a tensor, or its different slices along `dim`, in order.

    Each nan counts by itself.

    Args:
        sorted: accepted for compatibility: the result is always sorted.
        return_inverse: also return the position in the result of each element of the input, of the
            input's shape, or (n) along `dim`.
        return_counts: also return how often each element occurs.

    Returns:
        A tensor, or a tuple if more than that was requested.

    >>> import plugrad
    >>> x = plugrad.tensor([3, 1, 3, 2])
    >>> plugrad.unique(x, return_inverse=True, return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 0, 2, 1]), tensor([1, 1, 2]))
    >>> plugrad.unique(plugrad.tensor([[1, 2], [0, 5], [1, 2]]), dim=0)
    tensor([[0, 5],
            [1, 2]])
    """
    if dim is None:
        found = F._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = F.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked_for(found, return_inverse, return_counts)


@explains
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The first of each run of equal elements, or of equal slices along `dim`.

    Args:
        return_inverse: also the run that each element is in.
        return_counts: also how long each run is.

    Returns:
        A tensor, or a tuple if more than that was requested.

    >>> import plugrad
    >>> plugrad.unique_consecutive(plugrad.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    found = F._unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked_for(found, return_inverse, return_counts)


def _asked_for(found: Any, inverse: bool, counts: bool) -> Any:
    output, places, numbers = found
    if not (inverse or counts):
        return output
    return (output, *((places,) if inverse else ()), *((numbers,) if counts else ()))


@explains
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of elements by their numbers in row-major order, a tensor for each dimension.

    Raises:
        ValueError: a size is negative.
        TypeError: `indices` or `shape` has no integers.

    >>> import plugrad
    >>> plugrad.unravel_index(plugrad.tensor([4, 1]), (2, 3))
    (tensor([1, 0]), tensor([1, 1]))
    """
    if not isinstance(indices, TensorBase):
        raise_argument_error("unravel_index", "indices", 1, "Tensor", indices)
    kind = indices.dtype
    if kind.is_floating_point or kind.is_complex or kind.name == "bool":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind!r}")
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    elif isinstance(shape, TensorBase):
        if shape.ndim > 1 or shape.dtype.is_floating_point or shape.dtype.is_complex:
            raise TypeError(
                "expected 'shape' to be int or sequence of ints, but got a tensor of "
                f"{shape.ndim} dimensions and {shape.dtype!r}"
            )
        values: Any = shape
        shape = values.reshape(-1).tolist()
    sizes = int_list_argument(shape, "unravel_index", "shape", 2, 1)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    found: tuple[Tensor, ...] = tuple(F._unravel_index(indices, sizes))
    return found


@explains
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """How many points, or the sum of their weights, fall into each box of a grid.

    Args:
        input: the points, (..., n): n coordinates each.
        bins: a number of intervals for all coordinates, or one for each, or the edges of the
            intervals, a vector for each.
        range: where the intervals of each coordinate begin and end, 2 n numbers; by default the
            least and the greatest coordinate.
        weight: what each point counts, (...).
        density: whether the histogram is divided by its sum and by the volumes of the boxes.

    Returns:
        A named tuple of `hist` and `bin_edges`, a tuple of n vectors.

    Raises:
        RuntimeError: shapes, dtypes, the range or a number of intervals do not fit.
        TypeError: `bins` is not an int, a sequence of ints, or a sequence of tensors.

    >>> import plugrad
    >>> points = plugrad.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    >>> plugrad.histogramdd(points, bins=[2, 2]).hist
    tensor([[0., 1.],
            [2., 1.]])
    """
    items = _bins(input, bins)
    edges: Any
    hist: Any
    if items and isinstance(items[0], TensorBase):
        edges = tuple(items)
        hist = F._histogramdd_from_bin_tensors(input, items, weight=weight, density=density)
    else:
        options = {"range": range, "weight": weight, "density": density}
        edges = F._histogramdd_bin_edges(input, items, **options)
        hist = F._histogramdd_from_bin_cts(input, items, **options)
    if out is not None:
        hist = write_out("histogramdd", out[0], hist)
        edges = tuple(
            write_out("histogramdd", given, found)
            for given, found in zip(out[1], edges, strict=True)
        )
    return result_type("histogramdd", ("hist", "bin_edges"))(hist, tuple(edges))


def _bins(input: Tensor, bins: Any) -> list[Any]:
    """What `histogramdd` is told of each coordinate: numbers of intervals, or their edges."""
    if hasattr(bins, "__index__") and not isinstance(bins, (bool, TensorBase)):
        return [bins] * (input.shape[-1] if input.ndim else 0)
    if not isinstance(bins, (list, tuple)):
        raise TypeError(
            "histogramdd(): argument 'bins' (position 2) must be int, tuple of ints or tuple of "
            f"Tensors, not {type_name(bins)}"
        )
    if all(isinstance(item, TensorBase) for item in bins):
        return list(bins)
    return list(int_list_argument(bins, "histogramdd", "bins", 2))
