"""`vmap`: turns a function of one sample into a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from plugrad._generated import functions as F
from plugrad.levels.mapping import batch_of
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.levels import VMAP, AtLevel, Level, is_at, make_level_tensor
from plugrad.transforms.pytrees import broadcast_to, flatten, map_leaves, shown, unflatten

R = TypeVar("R")

RANDOMNESS = ("error", "different", "same")


@explains
def vmap(
    func: Callable[..., R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., R]:
    """A function that maps `func` over a dimension of its arguments, all elements at once.

    Inside `func` tensors lack the mapped dimension. Each operator is computed for the whole batch,
    by its batching rule, its decomposition, or in a loop (which warns once).

    Args:
        func: takes trees of tensors and other values, returns a tree of tensors.
        in_dims: which dimension of each positional argument is mapped over: an int for all, or a
            tuple with one entry for each argument; None is not mapped; an entry may be a tree that
            the argument's tree begins with. Keyword arguments are mapped over dimension 0.
        out_dims: where results have the dimension: an int for all, or a tree that the result's tree
            begins with. None: the result does not depend on the batch.
        randomness: "error": random operators raise; "different": every element draws its own
            numbers; "same": all get the same.
        chunk_size: the number of elements computed at once; default: all.

    Returns:
        A function of batches.

    Raises:
        ValueError: `in_dims` or `out_dims` do not fit, no argument is mapped over, sizes differ,
            or something else than tensors is returned.
        IndexError: an entry of `out_dims` is not a dimension of its result.
        RuntimeError: `randomness` is not one of the three; or `func` depends on values of elements,
            such as ``if x > 0`` or ``x.item()``.

    >>> import plugrad
    >>> from plugrad import vmap
    >>> a = plugrad.arange(6.).reshape(3, 2)
    >>> vmap(plugrad.dot, in_dims=(0, None))(a, plugrad.ones(2))
    tensor([1., 5., 9.])
    >>> vmap(lambda x: x / x.sum(), in_dims=1, out_dims=1)(a)
    tensor([[0.0000, 0.1111],
            [0.3333, 0.3333],
            [0.6667, 0.5556]])
    """
    check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, in_dims, out_dims, randomness, args, kwargs)
        return call.run() if chunk_size is None else call.run_in_chunks(chunk_size)

    return mapped


def check_randomness(randomness: str) -> None:
    """RuntimeError if it is none of the three kinds."""
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


class _Call:
    """One call of a mapped function."""

    def __init__(
        self,
        func: Callable[..., Any],
        in_dims: Any,
        out_dims: Any,
        randomness: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.func = func
        self.name = _name(func)
        self.out_dims = out_dims
        self.randomness = randomness
        self.leaves, self.structure = flatten((args, kwargs))
        self.dims = self._dims(in_dims, args, kwargs)
        self.batch_size = self._batch_size()

    def _dims(self, in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The dimension of each leaf, from 0 on, or None."""
        where = f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>): "
        if not isinstance(in_dims, int | tuple):
            raise ValueError(
                f"{where}expected `in_dims` to be int or a (potentially nested) tuple matching the "
                f"structure of inputs, got: {type(in_dims)}."
            )
        if not args and not kwargs:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported."
            )
        positional = broadcast_to(in_dims, args)
        if positional is None:
            raise ValueError(
                f"{where}in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {shown(flatten(in_dims)[1])} but inputs has structure "
                f"{shown(flatten(args)[1])}."
            )
        named = flatten(kwargs)[0]
        dims: list[Any] = [*positional, *(0 for _ in named)]
        return [
            self._dim(where, value, dim, place >= len(positional))
            for place, (value, dim) in enumerate(zip(self.leaves, dims, strict=True))
        ]

    def _dim(self, where: str, value: Any, dim: Any, is_named: bool) -> int | None:
        if dim is None or (is_named and not isinstance(value, TensorBase)):
            return None
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}Got in_dim={dim} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(value, TensorBase):
            raise ValueError(
                f"{where}Got in_dim={dim} for an input but the input is of type {type(value)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        ndim = value.ndim
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"{where}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        return dim % ndim

    def _batch_size(self) -> int:
        sizes: list[int] = []
        for value, dim in zip(self.leaves, self.dims, strict=True):
            if dim is not None and value.shape[dim] not in sizes:
                sizes.append(value.shape[dim])
        if not sizes:
            raise ValueError("vmap: at least one input must be mapped over: every in_dim is None")
        if len(sizes) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sizes} for the mapped dimension"
            )
        return sizes[0]

    def run(self) -> Any:
        """All elements at once."""
        results, structure, _ = self._run(self.leaves, self.batch_size)
        return unflatten(structure, results)

    def run_in_chunks(self, chunk_size: int) -> Any:
        """So many elements at once; the results are joined."""
        parts: list[list[Any]] = []
        structure: Any = None
        dims: list[Any] = []
        for start in range(0, self.batch_size, chunk_size):
            length = min(chunk_size, self.batch_size - start)
            leaves = [
                value if dim is None else value.narrow(dim, start, length)
                for value, dim in zip(self.leaves, self.dims, strict=True)
            ]
            results, structure, dims = self._run(leaves, length)
            parts.append(results)
        columns = zip(*parts, strict=True)
        joined = [
            column[0] if dim is None else F.cat(list(column), dim)
            for column, dim in zip(columns, dims, strict=True)
        ]
        return unflatten(structure, joined)

    def _run(self, leaves: list[Any], batch_size: int) -> tuple[list[Any], Any, list[Any]]:
        with AtLevel(VMAP, batch_size, self.randomness) as level:
            slices = [
                value if dim is None else make_level_tensor(value, level, dim)
                for value, dim in zip(leaves, self.dims, strict=True)
            ]
            args, kwargs = unflatten(self.structure, slices)
            output = self.func(*args, **kwargs)
            results, structure = flatten(output)
            dims = self._out_dims(output, structure)
            made = [
                self._result(value, level, dim) for value, dim in zip(results, dims, strict=True)
            ]
        return made, structure, dims

    def _out_dims(self, output: Any, structure: Any) -> list[Any]:
        where = f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): "
        # A tuple of one dimension is allowed for one result.
        given = self.out_dims
        if isinstance(output, TensorBase) and isinstance(given, tuple) and len(given) == 1:
            given = given[0]
        dims = broadcast_to(given, output)
        if dims is None:
            raise ValueError(
                f"{where}out_dims is not compatible with the structure of `outputs`. out_dims has "
                f"structure {shown(flatten(self.out_dims)[1])} but outputs has structure "
                f"{shown(structure)}."
            )
        for dim in dims:
            if dim is not None and not isinstance(dim, int):
                raise ValueError(
                    f"{where}`out_dims` must be an int, None or a python collection of ints or "
                    "None representing where in the outputs the vmapped dimension should appear."
                )
        return dims

    def _result(self, value: Any, level: Level, dim: int | None) -> Any:
        if dim is None:
            if isinstance(value, TensorBase) and is_at(value, level):
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when "
                    "out_dim is None"
                )
            return value
        if not isinstance(value, TensorBase):
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                f"{type(value)}. Did you mean to set out_dims= to None for output?"
            )
        return batch_of(value, level, dim)


def map_tensors(function: Callable[[TensorBase], Any], tree: Any) -> Any:
    """A tree with `function(tensor)` in the place of every tensor."""
    return map_leaves(lambda leaf: function(leaf) if isinstance(leaf, TensorBase) else leaf, tree)
