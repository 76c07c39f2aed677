"""Functions and methods that give several tensors return tuples, as PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "split": lambda m, x: m.split(x, 2),
    "split, sizes": lambda m, x: x.split([1, 3]),
    "split_with_sizes": lambda m, x: x.split_with_sizes([1, 3]),
    "chunk": lambda m, x: x.chunk(2),
    "unbind": lambda m, x: m.unbind(x),
    "tensor_split": lambda m, x: x.tensor_split(2),
    "tensor_split, indices": lambda m, x: m.tensor_split(x, (1, 2)),
    "hsplit": lambda m, x: x.hsplit(2),
    "vsplit": lambda m, x: m.vsplit(x, [1]),
    "dsplit": lambda m, x: m.dsplit(x, 2),
    "unsafe_split": lambda m, x: m.unsafe_split(x, 2),
    "unsafe_split_with_sizes": lambda m, x: x.unsafe_split_with_sizes([1, 3]),
    "unsafe_chunk": lambda m, x: x.unsafe_chunk(2),
    "meshgrid": lambda m, x: m.meshgrid([x[0, 0], x[0, 1]], indexing="ij"),
    "broadcast_tensors": lambda m, x: m.broadcast_tensors(x[0], x),
    "nonzero": lambda m, x: x.nonzero(as_tuple=True),
    "where": lambda m, x: m.where(x > 0),
    "vmap": lambda m, x: m.vmap(lambda a: a.unbind())(x),
    "vjp": lambda m, x: m.func.vjp(lambda a: a.split(2), x)[0],
    "jvp": lambda m, x: m.func.jvp(lambda a: a.unbind(), (x,), (x,))[1],
    "jacrev": lambda m, x: m.func.jacrev(lambda a: a.split(2))(x),
    "functionalize": lambda m, x: m.func.functionalize(lambda a: a.split(2))(x),
    "jacobian": lambda m, x: m.autograd.functional.jacobian(lambda a: a.split(2), x),
    "checkpoint": lambda m, x: m.utils.checkpoint.checkpoint(
        lambda a: a.split(2), x, use_reentrant=False
    ),
    "handle": lambda m, x: (m.ops.plugrad if m is plugrad else m.ops.aten).unbind(x),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:torch.meshgrid")
def test_several_tensors_come_as_in_pytorch(name: str, torch_oracle: Any) -> None:
    expected = CALLS[name](torch_oracle, torch_oracle.arange(64.0).reshape(4, 4, 4))
    found = CALLS[name](plugrad, plugrad.arange(64.0).reshape(4, 4, 4))
    assert type(found) is type(expected)
    assert [item.tolist() for item in found] == [item.tolist() for item in expected]


def test_a_captured_function_gives_the_same_kind() -> None:
    graph = plugrad.capture(lambda a: a.split(1), plugrad.ones(2))
    assert [item.tolist() for item in graph(plugrad.arange(2.0))] == [[0.0], [1.0]]
    assert isinstance(graph(plugrad.ones(2)), tuple)
