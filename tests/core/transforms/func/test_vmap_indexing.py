"""Indexing inside of `vmap`: what is read and written, by PyTorch, and what cannot be mapped."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from tests.core.ops.against_torch.oracle import torch
from tests.core.transforms.func.outcomes import outcome

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")

ROWS = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]
CUBE = [ROWS, [[-value for value in row] for row in ROWS]]
ONE = [0, -1]
SEVERAL = [[0, 1], [2, -1]]


def written(*place: Any) -> Callable[..., Any]:
    """`x[place] = value` on a copy, where "i" stands for an index that is mapped over."""

    def function(lib: Any, x: Any, i: Any, value: Any = 7.0) -> Any:
        x = x.clone()
        x[tuple(i if entry == "i" else entry for entry in place)] = value
        return x

    return function


READ: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "x[i]": (lambda lib, x, i: x[i], [CUBE, ONE]),
    "x[0, i]": (lambda lib, x, i: x[0, i], [CUBE, ONE]),
    "x[i, :2]": (lambda lib, x, i: x[i, :2], [CUBE, ONE]),
    "x[..., i]": (lambda lib, x, i: x[..., i], [CUBE, ONE]),
    "x[None, i]": (lambda lib, x, i: x[None, i], [CUBE, ONE]),
    "x[i, j]": (lambda lib, x, i, j: x[i, j], [CUBE, ONE, [1, 2]]),
    "x[[0, 1], i]": (lambda lib, x, i: x[[0, 1], i], [CUBE, ONE]),
    "y[i]": (lambda lib, i: lib.tensor(ROWS)[i], [ONE]),
    "x[v]": (lambda lib, x, v: x[v], [CUBE, SEVERAL]),
    "x[:, v]": (lambda lib, x, v: x[:, v], [CUBE, SEVERAL]),
    "x[v, :, v]": (lambda lib, x, v: x[None][v * 0, :, v], [CUBE, SEVERAL]),
    "y[:, v]": (lambda lib, v: lib.tensor(ROWS)[:, v], [SEVERAL]),
    "x[mask]": (lambda lib, x: x[lib.tensor([True, False, True])], [CUBE]),
    "x[mask, v]": (lambda lib, x, v: x[lib.tensor([True, False, True]), v], [CUBE, SEVERAL]),
    "x.take": (lambda lib, x, v: x.take(v), [CUBE, SEVERAL]),
    "nested": (
        lambda lib, x, v: lib.vmap(lambda y, i: y[i], in_dims=(None, 0))(x, v),
        [CUBE, SEVERAL],
    ),
}
WRITE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "x[i] = 7": (written("i"), [CUBE, ONE]),
    "x[i] = value": (written("i"), [CUBE, ONE, [1.0, 2.0]]),
    "x[:, i] = value": (written(slice(None), "i"), [CUBE, ONE, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]),
    "x[v] = value": (written("i"), [CUBE, SEVERAL, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]]),
    "x[1] = 7": (written(1), [CUBE, ONE]),
    "put": (lambda lib, x, v: x.put(v, lib.tensor([1.0, 2.0])), [CUBE, SEVERAL]),
    "scatter": (lambda lib, x, v: x.scatter(0, v[None] % 3, 5.0), [CUBE, SEVERAL]),
}


@needs_torch
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", [*READ, *WRITE])
def test_indexing_agrees_with_torch(name: str) -> None:
    function, args = (READ | WRITE)[name]
    found = []
    for lib in (plugrad, torch):
        tensors = [lib.tensor(value) for value in args]
        found.append(lib.vmap(lambda *x, lib=lib: function(lib, *x))(*tensors).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", READ)
def test_gradients_of_what_was_read(name: str) -> None:
    """Oracle: a loop over the batch."""
    function, args = READ[name]
    if args[0] is not CUBE:
        return
    tensors = [plugrad.tensor(value) for value in args]
    x = tensors[0].requires_grad_()
    mapped = plugrad.vmap(lambda *x: function(plugrad, *x))(*tensors)
    rows = plugrad.stack([function(plugrad, *row) for row in zip(*tensors, strict=True)])
    wanted = plugrad.autograd.grad((rows * rows).sum(), x)[0]
    found = plugrad.autograd.grad((mapped * mapped).sum(), x)[0]
    assert found.tolist() == wanted.tolist()


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "x[x > 3]": (lambda x: x[x > 3], "batch over indexing with a boolean mask"),
    "x[x > 3] = 0": (
        lambda x: x.index_put((x > 3,), plugrad.tensor(0.0)),
        "batch over indexing with a boolean mask",
    ),
    "masked_select": (lambda x: x.masked_select(x > 3), "would return a differently shaped Tensor"),
    "nonzero": (lambda x: x.nonzero(), "operators that can output dynamic shape"),
    "nonzero of columns": (
        lambda x: x.nonzero(as_tuple=True),
        "operators that can output dynamic shape",
    ),
    "one_hot": (
        lambda x: plugrad.one_hot(x.long()),
        "please provide an explicit positive num_classes argument",
    ),
    "item": (lambda x: x[0].item(), "you're calling .item\\(\\) on a Tensor"),
    "bool": (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_elements_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(RuntimeError, match=message):
        plugrad.vmap(function)(plugrad.tensor(ROWS))
    with pytest.raises(RuntimeError, match=message):
        plugrad.vmap(plugrad.vmap(function))(plugrad.tensor(CUBE))


@pytest.mark.parametrize(
    ("function", "indices"),
    [
        (lambda x, i: x.gather(0, i), [[0], [4], [1]]),
        (lambda x, i: x.index_select(0, i), [[0], [-1], [1]]),
        (lambda x, i: x[i], [0, 4, 1]),
        (lambda x, i: x[i], [[0], [4], [1]]),
        (lambda x, i: x.index_add(0, i, x[:1]), [[0], [4], [1]]),
        (lambda x, i: x.index_fill(0, i, 1.0), [[0], [-5], [1]]),
        (lambda x, i: plugrad.embedding(x[:, None], i), [[0], [4], [1]]),
    ],
)
def test_indices_that_are_out_of_range_do_not_reach_another_element(
    function: Callable[..., Any], indices: list[Any]
) -> None:
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        plugrad.vmap(function)(plugrad.tensor(ROWS), plugrad.tensor(indices))
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        function(plugrad.tensor(ROWS[0]), plugrad.tensor(indices[1]))


def test_an_index_that_is_out_of_range_is_named(torch_oracle: ModuleType) -> None:
    def store(x: Any, i: Any) -> Any:
        x = x.clone()
        x[i] = 1.0
        return x

    def refusal(lib: Any, function: Any, indices: list[int]) -> Any:
        mapped = lib.func.vmap(function)
        name, message = outcome(lib, lambda lib: mapped(lib.zeros(2, 3), lib.tensor(indices)))
        return name, message.partition(" for dimension")[0]

    for function in (lambda x, i: x[i], lambda x, i: x[..., i], store):
        for indices in ([5, 0], [-4, 0], [0, 3]):
            expected = refusal(torch_oracle, function, indices)
            if function is not store:
                assert expected[0] == "IndexError"
            assert refusal(plugrad, function, indices) == expected


def test_an_index_that_fits_no_source_is_not_broadcast() -> None:
    x, source = plugrad.zeros(2, 4), plugrad.ones(2, 3)
    index = plugrad.tensor([[1], [2]])
    with pytest.raises(RuntimeError, match="Number of indices \\(1\\) should be equal to"):
        plugrad.vmap(lambda x, i, s: x.index_add(0, i, s))(x, index, source)
    with pytest.raises(IndexError, match="Number of indices \\(1\\) should be equal to"):
        plugrad.vmap(lambda x, i, s: x.index_copy(0, i, s))(x, index, source)
