"""Gradients of `vmap`, and `vmap` of gradients, of operators that have batching rules of their own.

Oracle: a loop over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.testing.assert_close import assert_close
from plugrad.testing.cases import Arguments, OpCase, OpSample, flatten, resolve, seed_of
from plugrad.testing.cases.registry import family_cases

BATCH = 3
FAMILIES = ("indexing", "linear_systems", "loss", "nn")
# Of other families, what chooses a formula by its elements, and running sums.
OTHERS = {"reductions": ("prod", "cumprod", "cumsum", "cummax"), "composites": ("scatter_reduce",)}
# They write to running statistics, which all elements would share.
WRITING = ("batch_norm",)
# Samples of one operator, spread over all it has.
ENOUGH = 3


def cases() -> Iterator[OpCase]:
    for family in FAMILIES:
        yield from family_cases(family)
    for family, names in OTHERS.items():
        yield from (case for case in family_cases(family) if case.op in names)


CASES = [case for case in cases() if case.gradient and case.op not in WRITING]


def scalar_of(case: OpCase, sample: OpSample) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the leaves alone, with one real number as result, and the leaves."""
    made = Arguments("float64", seed_of(case, sample), overlapping=False)
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    position = {id(leaf): index for index, leaf in enumerate(made.leaves)}

    def substitute(value: Any, tensors: tuple[Any, ...]) -> Any:
        if id(value) in position:
            return tensors[position[id(value)]]
        if isinstance(value, (list, tuple)):
            return type(value)(substitute(item, tensors) for item in value)
        if isinstance(value, dict):
            return {key: substitute(item, tensors) for key, item in value.items()}
        return value

    function = resolve(case.op)

    def scalar(*tensors: Any) -> Any:
        outputs = flatten(function(*substitute(args, tensors), **substitute(kwargs, tensors)))
        total: Any = 0
        for output in outputs:
            if isinstance(output, plugrad.Tensor) and output.is_floating_point():
                total = total + (output * output / 2 + output).sum()
        return total

    return scalar, [leaf.detach() for leaf in made.leaves]


def others_like(tensor: Any) -> list[Any]:
    """Tensors with the same elements in other places."""
    flat = tensor.reshape(-1)
    return [flat.roll(shift).reshape(tensor.shape).clone() for shift in range(BATCH)]


def grads(function: Callable[..., Any], tensors: list[Any]) -> list[Any]:
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    found = plugrad.autograd.grad(function(*leaves), leaves, allow_unused=True)
    return [
        plugrad.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(leaves, found, strict=True)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_gradients_agree_with_a_loop(case: OpCase) -> None:
    samples = [sample for sample in case.all_samples() if "requires_grad=True" in repr(sample)]
    for sample in samples[:: max(len(samples) // ENOUGH, 1)][:ENOUGH]:
        function, leaves = scalar_of(case, sample)
        rows = [others_like(leaf) for leaf in leaves]
        everywhere = tuple([0] * len(leaves))
        choices = [everywhere]
        if len(leaves) > 1:
            choices.append((0, *[None] * (len(leaves) - 1)))
            choices.append((None, *everywhere[1:]))
        for in_dims in choices:
            check(function, rows, in_dims)


def check(function: Callable[..., Any], rows: list[list[Any]], in_dims: tuple[Any, ...]) -> None:
    wanted = [
        grads(
            function, [row[0 if dim is None else k] for row, dim in zip(rows, in_dims, strict=True)]
        )
        for k in range(BATCH)
    ]
    batch = [
        row[0] if dim is None else plugrad.stack(row)
        for row, dim in zip(rows, in_dims, strict=True)
    ]
    outside = grads(lambda *x: plugrad.vmap(function, in_dims=in_dims)(*x).sum(), batch)
    argnums = tuple(range(len(batch)))
    inside = plugrad.vmap(plugrad.func.grad(function, argnums=argnums), in_dims=in_dims)(*batch)
    for place, dim in enumerate(in_dims):
        expected = plugrad.stack([turn[place] for turn in wanted])
        assert_close(inside[place], expected, equal_nan=True)
        assert_close(outside[place], expected if dim == 0 else expected.sum(0), equal_nan=True)


def test_batch_norm_has_running_statistics_for_each_element() -> None:
    x, mean = plugrad.randn(BATCH, 5, 4), plugrad.randn(BATCH, 4)
    scale, var = plugrad.randn(4, requires_grad=True), plugrad.rand(BATCH, 4)

    def norm(x: Any, mean: Any, var: Any) -> Any:
        return plugrad.batch_norm(x, scale, None, mean, var, True, 0.1, 1e-5)

    moved, spread = mean.clone(), var.T.clone()
    found = plugrad.vmap(norm, in_dims=(0, 0, 1))(x, moved, spread)
    loop = plugrad.stack([norm(*row) for row in zip(x, mean, var, strict=True)])
    assert_close(found, loop)
    assert_close(moved, mean)
    assert_close(spread, var.T)
    assert_close(*[plugrad.autograd.grad((y * y * y).sum(), scale)[0] for y in (found, loop)])
    with pytest.raises(
        RuntimeError, match="the running_mean or running_var, which will be updated"
    ):
        plugrad.vmap(norm, in_dims=(0, None, None))(x, mean[0], var[0])
    evaluated = plugrad.vmap(
        lambda x: plugrad.batch_norm(x, scale, None, mean[0], var[0], False, 0.1, 1e-5)
    )
    wanted = plugrad.batch_norm(x.flatten(0, 1), scale, None, mean[0], var[0], False, 0.1, 1e-5)
    assert_close(evaluated(x).flatten(0, 1), wanted)


EMPTY: list[Callable[..., Any]] = [
    lambda x, i: x.gather(0, i),
    lambda x, i: x[i],
    lambda x, i: x.index_add(0, i, x[:2]),
    lambda x, i: x.masked_scatter(x > 0, x),
    lambda x, i: x.median(),
    lambda x, i: x.sort()[0],
    lambda x, i: plugrad.linalg.solve(x[:, None] * x, x),
    lambda x, i: plugrad.conv1d(x[None, None], plugrad.ones(1, 1, 2)),
    lambda x, i: plugrad.max_pool2d((x[:, None] * x)[None, None], 2),
    lambda x, i: plugrad.layer_norm(x, (5,)),
    lambda x, i: plugrad.embedding(x[:, None], i),
    lambda x, i: plugrad.cross_entropy_loss(x, i[0]),
]


@pytest.mark.parametrize("function", EMPTY)
def test_an_empty_batch_has_empty_results(function: Callable[..., Any]) -> None:
    x, i = plugrad.rand(5), plugrad.tensor([0, 1])
    none = x.expand(0, 5), i.expand(0, 2)
    assert plugrad.vmap(function)(*none).shape == (0, *function(x, i).shape)
    grad = plugrad.vmap(plugrad.func.grad(lambda x, i: function(x, i).sum()))
    assert grad(*none).shape == (0, 5)
