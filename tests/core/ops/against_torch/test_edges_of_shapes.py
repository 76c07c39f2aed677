"""Shapes, lists of tensors and reductions at the edges, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.core.ops.against_torch.edges import check


def bools_among_ints(lib: Any) -> Any:
    x = lib.ones(1, 2)
    return [
        lib.zeros([2, True]), lib.zeros(2, True), x.permute(1, False), x.reshape((2, True)),
        x.sum([0, True]), x.flip([0, True]), x.expand(3, True, -1), x.split([1, True], 1),
        lib.nn.functional.conv2d(lib.ones(1, 1, 3, 3), lib.ones(1, 1, 1, 1), padding=[0, True]),
    ]  # fmt: skip


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    "bools among ints": bools_among_ints,
    "a bool before ints": lambda lib: lib.zeros([True, 2]),
    "bool sum_to_size": lambda L: L.ones(2, 3, dtype=L.bool).sum_to_size(3),
    "max and a number": lambda L: L.max(L.ones(2, 3), L.tensor(1)),
    "min of two ranks": lambda L: L.min(L.tensor([1, 5]), L.ones(2, 1) * 3.5),
    "max along dim": lambda L: L.max(L.ones(2, 3), 1)[0],
    "tensor_split": lambda L: L.tensor_split(L.arange(5), L.tensor([1, 3])),
    "tensor_split of floats": lambda L: L.tensor_split(L.arange(5), L.tensor([1.0])),
    "tensor_split of 2 dims": lambda L: L.tensor_split(L.arange(5), L.tensor([[1]])),
    "meshgrid of one": lambda L: L.meshgrid(L.arange(2), indexing="ij"),
    "meshgrid of none": lambda L: L.meshgrid(),
    "meshgrid of a list": lambda L: L.meshgrid([L.arange(2), L.arange(3)], indexing="xy"),
    "meshgrid of two dtypes": lambda L: L.meshgrid(L.arange(2), L.ones(2, 2)),
    "atleast_1d of several": lambda L: L.atleast_1d(L.tensor(1), L.tensor([2])),
    "atleast_2d of a list": lambda L: L.atleast_2d([L.tensor(1), L.tensor([2])]),
    "atleast_3d of none": lambda L: L.atleast_3d(),
    "diff of nothing left": lambda L: L.diff(L.ones(4), n=6),
    **{
        f"{name} into {dtype}": (
            lambda L, name=name, dtype=dtype: getattr(L, name)(  # type: ignore[misc]
                L.tensor([[0, 2], [3, 4]]), 1, out=L.empty(2, dtype=getattr(L, dtype))
            )
        )
        for name in ("all", "any")
        for dtype in ("bool", "uint8", "int8", "float32")
    },
    **{
        f"{name} of bytes into {dtype}": (
            lambda L, name=name, dtype=dtype: getattr(L, name)(  # type: ignore[misc]
                L.tensor([[0, 2], [3, 4]], dtype=L.uint8),
                1,
                out=L.empty(2, dtype=getattr(L, dtype)),
            )
        )
        for name in ("all", "any")
        for dtype in ("bool", "uint8", "int8")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])
