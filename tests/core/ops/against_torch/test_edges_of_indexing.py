"""Indices, sources and masks at the edges, and what overlaps, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

import plugrad
from plugrad.testing import gradcheck
from tests.core.ops.against_torch.edges import INF, check, described, gradients


def overlapping(name: str, *args: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        x = lib.arange(4.0)
        getattr(x[1:], name)(x[:-1], *args)
        return x

    return program


def indexed(name: str, *behind: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        x = lib.arange(5.0)
        return getattr(x, name)(0, lib.tensor([0, 1]), x[2:4], *behind)

    return program


def greatest_at(reduce: str) -> Callable[[Any], Any]:
    """Infinite elements, which equal the neutral element."""

    def program(lib: Any) -> Any:
        index = lib.tensor([0, 1, 1, 0, 4, 5, 2, 0])

        def reduced(x: Any, source: Any) -> Any:
            return x.scatter_reduce(0, index, source, reduce) * lib.arange(1.0, 7)

        source = lib.tensor([-INF, INF, INF, -INF, -INF, INF, 3.0, -INF])
        return gradients(reduced, lib.tensor([-INF, INF, 1.0, 2.0, -INF, INF]), source)

    return program


def filled_with(number: complex) -> Callable[[Any], Any]:
    """What is stored of a complex number, where it can be."""

    def program(lib: Any) -> Any:
        def attempt(fill: Callable[[], Any]) -> Any:
            try:
                return described(fill())
            except RuntimeError as error:
                return str(error)

        def assigned(x: Any) -> Any:
            x[0] = number
            return x

        return [
            attempt(fill)
            for kind in (lib.bool, lib.int64, lib.float32)
            for x in [lib.zeros(2, dtype=kind)]
            for fill in (
                partial(lib.full, (2,), number, dtype=kind),
                partial(lib.scalar_tensor, number, dtype=kind),
                partial(x.clone().fill_, number),
                partial(x.new_full, (2,), number),
                partial(x.masked_fill, lib.tensor([True, False]), number),
                partial(x.index_fill, 0, lib.tensor([1]), number),
                partial(x.scatter, 0, lib.tensor([1]), number),
                partial(assigned, x.clone()),
            )
        ]

    return program


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **{f"{reduce} of infinities": greatest_at(reduce) for reduce in ("amax", "amin")},
    **{f"filled with {number}": filled_with(number) for number in (1j, 2 + 0j, 0j)},
    **{
        f"{name} of what it overlaps": overlapping(name)
        for name in ("add_", "mul_", "copy_", "atan2_", "xlogy_", "pow_", "clamp_", "eq_")
    },
    **{
        f"{name} of itself": indexed(name)
        for name in ("index_add_", "index_copy_", "scatter_", "scatter_add_")
    },
    "the index is written": lambda L: (lambda x: x.scatter_(0, x, 1))(L.arange(4)),
    "put_ of itself": lambda L: (lambda x: x.put_(L.tensor([0, 1]), x[:2]))(L.arange(4.0)),
    "x += x.T": lambda L: (lambda x: x.add_(x.t()))(L.ones(3, 3)),
    "x += x": lambda L: (lambda x: x.add_(x))(L.ones(3)),
    "halves": lambda L: (lambda x: x[2:].add_(x[:2]))(L.ones(4)),
    "source of another shape": lambda L: L.index_add(L.ones(()), 0, L.tensor([0]), L.ones(1)),
    "source without dims": lambda L: L.index_add(L.ones(3), 0, L.tensor([0]), L.ones(())),
    "source of fewer dims": lambda L: L.index_add(L.ones(3, 2), 1, L.tensor([0]), L.ones(3)),
    "copy of a number": lambda L: L.index_copy(L.ones(3), 0, L.tensor([0, 1]), L.ones(())),
    "take_along_dim": lambda L: L.take_along_dim(L.arange(4.0), L.tensor([-1, 5]), 0),
    "take_along_dim of none": lambda L: L.take_along_dim(L.tensor(3.0), L.tensor(0), 0),
    "scatter and add": lambda L: L.ones(3).scatter_(0, L.tensor([0, 0]), 2.0, reduce="add"),
    "scatter and multiply": lambda L: L.ones(2).scatter(
        0, L.tensor([0, 0]), L.tensor([2.0, 3.0]), reduce="multiply"
    ),
    **{
        f"scatter_reduce by an index of shape {shape} and a source of shape {given}": (
            lambda L, shape=shape, given=given: gradients(  # type: ignore[misc]
                lambda x, y: x.scatter_reduce(0, L.zeros(shape, dtype=L.int64), y, "prod"),
                L.tensor([2.0, 3.0]),
                L.full(given, 5.0),
            )
        )
        for shape in ((), (1,))
        for given in ((), (1,))
    },
    **{
        f"scatter_reduce by an index of shape {shape}, which is empty": (
            lambda L, shape=shape: L.arange(6.0)  # type: ignore[misc]
            .view(2, 3)
            .scatter_reduce(1, L.zeros(shape, dtype=L.int64), L.ones(4), "mean", include_self=False)
        )
        for shape in ((0,), (2, 0), (0, 5), (2, 0, 7))
    },
    **{
        f"scatter_reduce of a number along {dim}": (
            lambda L, dim=dim: L.tensor(2.0).scatter_reduce(dim, L.tensor([0]), L.ones(1), "sum")  # type: ignore[misc]
        )
        for dim in (-2, -1, 0, 3)
    },
    **{
        f"scatter_reduce at {dtype}": (
            lambda L, dtype=dtype: L.ones(2).scatter_reduce(  # type: ignore[misc]
                0, L.tensor([1, 0, 1], dtype=getattr(L, dtype)), L.ones(3), "sum"
            )
        )
        for dtype in ("int32", "int16", "float32")
    },
    "take_along_dim of int32 indices": (
        lambda L: L.take_along_dim(L.arange(6.0).view(2, 3), L.tensor([5, 0], dtype=L.int32))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_indexing_at_edges_is_that_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])


@pytest.mark.parametrize("turned", [False, True])
def test_as_strided_scatter_has_a_gradient_where_its_source_stays(turned: bool) -> None:
    """Of elements that go to one place the last one stays; PyTorch gives each its gradient."""
    plugrad.manual_seed(0)
    x = plugrad.rand(3, 3, dtype=plugrad.float64).requires_grad_()
    source = plugrad.rand(2, 2, dtype=plugrad.float64).requires_grad_()

    def scattered(x: Any, source: Any) -> Any:
        return plugrad.as_strided_scatter(x.t() if turned else x, source, (2, 2), (1, 1), 1)

    assert gradcheck(scattered, (x, source))
