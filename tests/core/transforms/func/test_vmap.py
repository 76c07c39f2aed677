"""`vmap`: what it maps, and PyTorch's errors for what it cannot. Oracle: PyTorch's words, loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import vmap

X = plugrad.arange(6.0).reshape(2, 3)


def test_the_function_sees_one_sample() -> None:
    seen: list[Any] = []

    def look(x: plugrad.Tensor) -> plugrad.Tensor:
        seen.append((x.shape, x.ndim, x.dtype, x.device, x.stride()))
        return x

    vmap(look, in_dims=1)(X)
    assert seen == [((2,), 1, plugrad.float32, X.device, (3,))]


def test_dimensions_in_and_out_may_be_anywhere() -> None:
    mapped = vmap(lambda x, y: (x * y, x), in_dims=(1, None), out_dims=(1, 0))
    product, same = mapped(X, plugrad.tensor([1.0, 2.0]))
    assert product.tolist() == [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]]
    assert same.tolist() == X.T.tolist()


def test_products_of_one_matrix_with_vectors_are_rows_in_memory() -> None:
    """What follows would be slower on columns: see the benchmark `transforms`."""
    matrix = plugrad.arange(12.0).reshape(4, 3)
    for mapped in (vmap(lambda x: plugrad.mv(matrix, x)), vmap(lambda x: matrix @ x)):
        found = mapped(X)
        assert found.tolist() == (X @ matrix.T).tolist()
        assert found.is_contiguous()
    grads = vmap(plugrad.func.grad(lambda m, x: (m @ x).sum()), in_dims=(None, 0))(matrix, X)
    assert grads.is_contiguous()
    assert grads.tolist() == X[:, None].expand(2, 4, 3).tolist()


def test_trees_of_arguments_and_results() -> None:
    mapped = vmap(lambda d: {"sum": d["a"] + d["b"]}, in_dims=({"a": 0, "b": None},))
    found = mapped({"a": X, "b": plugrad.ones(3)})
    assert found["sum"].tolist() == (X + 1).tolist()


def test_keyword_arguments_are_mapped_over_dimension_0() -> None:
    found = vmap(lambda x, y, flag: x + y if flag else x, in_dims=(0, 0, None))(X, X, True)
    assert found.tolist() == (X + X).tolist()
    assert vmap(lambda x, y=None: x + y)(X, y=X).tolist() == (X + X).tolist()


def test_a_result_that_depends_on_no_sample_is_repeated_or_given_as_it_is() -> None:
    assert vmap(lambda x: plugrad.ones(2))(X).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert vmap(lambda x: plugrad.ones(2), out_dims=None)(X).tolist() == [1.0, 1.0]


def test_mapped_functions_nest() -> None:
    outer = vmap(vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))
    a, b = plugrad.arange(3.0), plugrad.arange(1.0, 3.0)
    assert outer(a, b).tolist() == [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks_give_the_same(chunk_size: int) -> None:
    mapped = vmap(lambda x: x * x, in_dims=1, out_dims=1, chunk_size=chunk_size)
    assert mapped(X).tolist() == (X * X).tolist()


def test_printing_shows_the_levels() -> None:
    texts: list[str] = []
    vmap(plugrad.func.grad(lambda x: (texts.append(repr(x)), x * x)[1]))(plugrad.arange(2.0))
    assert texts == [
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n"
        "        tensor([0., 1.])\n    )\n)"
    ]


def test_a_tensor_that_got_out_raises() -> None:
    kept: list[plugrad.Tensor] = []
    vmap(lambda x: (kept.append(x), x)[1])(X)
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        kept[0] + 1


def test_an_error_inside_leaves_no_level_behind() -> None:
    def fail(x: plugrad.Tensor) -> plugrad.Tensor:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        vmap(vmap(fail))(X)
    assert (X + 1).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    plugrad.ones(2, requires_grad=True).sum().backward()


def test_writing_to_a_batch_reaches_it_and_nothing_else() -> None:
    batch = plugrad.zeros(2, 3)
    vmap(lambda x, y: x.add_(y))(batch, X)
    assert batch.tolist() == X.tolist()


def test_writing_a_batch_to_what_is_none_is_refused() -> None:
    with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args"):
        vmap(lambda x: plugrad.zeros(3).add_(x))(X)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X),
        RuntimeError,
        "attempting to use a Tensor in some data-dependent control flow",
    ),
    (lambda: vmap(lambda x: x.sum().item())(X), RuntimeError, "you're calling .item() on a Tensor"),
    (
        lambda: vmap(lambda x: 1)(X),
        ValueError,
        "vmap(<lambda>, ...): `<lambda>` must only return Tensors, got type <class 'int'>. Did you "
        "mean to set out_dims= to None for output?",
    ),
    (
        lambda: vmap(lambda x: x, in_dims=3)(X),
        ValueError,
        "vmap(<lambda>, in_dims=3, ...)(<inputs>): Got in_dim=3 for some input, but that input is "
        "a Tensor of dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2.",
    ),
    (
        lambda: vmap(lambda x, y: x, in_dims=(0,))(X, X),
        ValueError,
        "in_dims is not compatible with the structure of `inputs`.",
    ),
    (
        lambda: vmap(lambda x, y: x)(X, plugrad.ones(4)),
        ValueError,
        "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
        "[2, 4] for the mapped dimension",
    ),
    (
        lambda: vmap(lambda x: x, in_dims=None)(X),
        ValueError,
        "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
        "inputs, got: <class 'NoneType'>.",
    ),
    (
        lambda: vmap(lambda x: x)(3),
        ValueError,
        "Got in_dim=0 for an input but the input is of type <class 'int'>. We cannot vmap over "
        "non-Tensor arguments, please use None as the respective in_dim",
    ),
    (lambda: vmap(lambda: 3)(), ValueError, "vmap(<lambda>)(<inputs>): got no inputs."),
    (
        lambda: vmap(lambda x: x, out_dims=3)(X),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 3)",
    ),
    (
        lambda: vmap(lambda x: (x, x), out_dims=(0,))(X),
        ValueError,
        "out_dims is not compatible with the structure of `outputs`.",
    ),
    (
        lambda: vmap(lambda x: x, out_dims=None)(X),
        ValueError,
        "vmap(<lambda>, ...): `<lambda>` can not return a BatchedTensor when out_dim is None",
    ),
    (
        lambda: vmap(lambda x: x, randomness="a"),
        RuntimeError,
        "Only allowed values for randomness are 'error', 'different', or 'same'. Got a",
    ),
    (
        lambda: vmap(lambda x: x, chunk_size=0),
        ValueError,
        "vmap: chunk_size should be None or greater than 0. (got 0)",
    ),
    (
        lambda: vmap(lambda x: x + plugrad.rand(3))(X),
        RuntimeError,
        "vmap: called random operation while in randomness error mode.",
    ),
]


@pytest.mark.parametrize(("run", "error", "message"), ERRORS)
def test_errors(run: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run()


def test_random_numbers_are_the_same_or_different() -> None:
    zeros = plugrad.zeros(4)
    same = vmap(lambda x: x + plugrad.rand(()), randomness="same")(zeros).tolist()
    different = vmap(lambda x: x + plugrad.rand(()), randomness="different")(zeros).tolist()
    assert len(set(same)) == 1
    assert len(set(different)) == 4
