"""Random numbers under `vmap`, and tensors that are made or filled there; PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.keys import COMPOSITE_IMPLICIT_AUTOGRAD
from plugrad.dispatch.operator import all_operators
from plugrad.levels.randomness import draws
from plugrad.ops.batching import rule_of
from plugrad.tensor.base import TensorBase

BATCH = 64

FACTORIES: dict[str, Callable[..., Any]] = {
    "rand": lambda x: plugrad.rand(2, 3),
    "randn": lambda x: plugrad.randn(2, 3),
    "randint": lambda x: plugrad.randint(1000, (2, 3)),
    "randint.low": lambda x: plugrad.randint(5, 1000, (2, 3)),
    "randperm": lambda x: plugrad.randperm(6),
    "normal": lambda x: plugrad.normal(0.0, 1.0, (2, 3)),
}
# These take the shape of what is mapped over, ...
LIKE: dict[str, Callable[..., Any]] = {
    "rand_like": plugrad.rand_like,
    "randn_like": plugrad.randn_like,
    "randint_like": lambda x: plugrad.randint_like(x, 1000),
    "randint_like.low_dtype": lambda x: plugrad.randint_like(x, 5, 1000),
}
IN_PLACE: dict[str, Callable[..., Any]] = {
    "bernoulli_": lambda x: plugrad.zeros_like(x).bernoulli_(0.5),
    "bernoulli_.Tensor": lambda x: plugrad.zeros_like(x).bernoulli_(plugrad.tensor(0.5)),
    "exponential_": lambda x: plugrad.zeros_like(x).exponential_(),
    "normal_": lambda x: plugrad.zeros_like(x).normal_(),
    "random_": lambda x: plugrad.zeros_like(x).random_(),
    "random_.to": lambda x: plugrad.zeros_like(x).random_(1000),
    "random_.from": lambda x: plugrad.zeros_like(x).random_(5, 1000),
    "uniform_": lambda x: plugrad.zeros_like(x).uniform_(),
    "cauchy_": lambda x: plugrad.zeros_like(x).cauchy_(),
    "log_normal_": lambda x: plugrad.zeros_like(x).log_normal_(),
    "geometric_": lambda x: plugrad.zeros_like(x).geometric_(0.1),
}
# ... and these a distribution.
OF_DISTRIBUTION: dict[str, Callable[..., Any]] = {
    "bernoulli": plugrad.bernoulli,
    "bernoulli.p": lambda x: plugrad.bernoulli(x, 0.5),
    "multinomial": lambda x: plugrad.multinomial(x + 0.1, 3),
    "normal.Tensor_Tensor": lambda x: plugrad.normal(x, x),
    "normal.Tensor_float": lambda x: plugrad.normal(x, 1.0),
    "normal.float_Tensor": lambda x: plugrad.normal(0.0, x),
    "bernoulli_.Tensor": lambda x: plugrad.zeros_like(x).bernoulli_(x),
    "poisson": lambda x: plugrad.poisson(x * 9),
    "binomial": lambda x: plugrad.binomial(x * 80, plugrad.tensor([0.3, 0.5, 0.7])),
    "_standard_gamma": plugrad._standard_gamma,
    "_sample_dirichlet": plugrad._sample_dirichlet,
}
HALVES = plugrad.full((2, 3), 0.5)


def mapped(function: Callable[..., Any], randomness: str, in_dim: int = 1) -> Any:
    """The results for a batch of tensors that are all alike."""
    plugrad.manual_seed(3)
    batch = HALVES.unsqueeze(in_dim).repeat_interleave(BATCH, in_dim)
    return plugrad.vmap(function, in_dims=in_dim, randomness=randomness)(batch)


def differ(batch: Any) -> bool:
    """Whether the elements of a batch are different ones."""
    return not bool((batch == batch[:1]).all())


def test_every_operator_that_draws_for_a_tensor_has_a_rule() -> None:
    drawing = [
        op
        for op in all_operators()
        if op.namespace == "plugrad"
        and draws(op)
        and any(argument.type.base == "Tensor" for argument in op.schema.arguments)
        and op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD) is None
    ]
    assert len(drawing) > 15
    assert [op.full_name for op in drawing if rule_of(op) is None] == []


@pytest.mark.parametrize("function", [*FACTORIES.values(), *LIKE.values(), *IN_PLACE.values()])
def test_drawing_is_as_randomness_says(function: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        mapped(function, "error")
    different, same = mapped(function, "different"), mapped(function, "same")
    assert different.shape == same.shape == (BATCH, *function(HALVES).shape)
    assert different.dtype is same.dtype is function(HALVES).dtype
    assert differ(different)
    assert not differ(same)
    assert bool((same != 0).any())


@pytest.mark.parametrize("function", OF_DISTRIBUTION.values())
def test_of_a_distribution_each_element_draws_its_own(function: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        mapped(function, "error")
    with pytest.raises(RuntimeError, match="not currently support same randomness with a batched"):
        mapped(function, "same")
    found = mapped(function, "different")
    assert found.shape == (BATCH, 2, 3)
    assert differ(found)


@pytest.mark.parametrize(
    "function", [*LIKE.values(), *IN_PLACE.values(), *OF_DISTRIBUTION.values()]
)
def test_what_is_not_mapped_is_drawn_for_each_element_or_once(
    function: Callable[..., Any],
) -> None:
    same = mapped(lambda x: function(HALVES) + 0 * x, "same")
    assert not differ(same)
    if function in IN_PLACE.values() or function is OF_DISTRIBUTION["bernoulli_.Tensor"]:
        # There is only one tensor to write to.
        with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched"):
            mapped(lambda x: function(HALVES), "different")
    else:
        assert differ(mapped(lambda x: function(HALVES) + 0 * x, "different"))


def test_distributions_are_those_of_the_elements() -> None:
    different = {"randomness": "different"}
    chosen = plugrad.vmap(lambda x: plugrad.multinomial(x, 1), **different)(plugrad.eye(BATCH))
    assert chosen.flatten().tolist() == list(range(BATCH))
    odds = plugrad.arange(BATCH) % 2.0
    drawn = plugrad.vmap(lambda x: x.new_zeros(2).bernoulli_(x), **different)
    assert bool((drawn(odds) == odds[:, None]).all())
    means = plugrad.arange(BATCH) * 100.0
    normal = plugrad.vmap(lambda x: plugrad.normal(x, plugrad.ones(3)), **different)(means)
    assert normal.shape == (BATCH, 3)
    assert bool(((normal - means[:, None]).abs() < 50).all())


@pytest.mark.parametrize("in_dim", [0, 1])
def test_dropout_keeps_the_same_or_different_elements(in_dim: int) -> None:
    x = (plugrad.rand(4, BATCH, 5) + 1).movedim(1, in_dim)
    batch = x.movedim(in_dim, 0)

    def drop(x: Any) -> Any:
        return plugrad.native_dropout(x, 0.5, True)

    for randomness in ("different", "same"):
        out, kept = plugrad.vmap(drop, in_dims=in_dim, randomness=randomness)(x)
        assert kept.shape == (BATCH, 4, 5)
        assert differ(kept) is (randomness == "different")
        assert bool((out == batch * kept * 2).all())
    out, kept = plugrad.vmap(lambda x: plugrad.native_dropout(x, 0.5, False), in_dims=in_dim)(x)
    assert bool((out == batch).all())
    assert bool(kept.all())


def test_dropout_draws_inside_and_outside_of_two_levels() -> None:
    def drop(x: Any) -> Any:
        return plugrad.native_dropout(x, 0.5, True)[1]

    ones = plugrad.ones(BATCH, 3, 20)
    for outer in ("different", "same"):
        for inner in ("different", "same"):
            f = plugrad.vmap(plugrad.vmap(drop, randomness=inner), randomness=outer)
            kept = f(ones)
            assert kept.shape == (BATCH, 3, 20)
            assert differ(kept) is (outer == "different")
            assert differ(kept.movedim(1, 0)) is (inner == "different")


def test_filling() -> None:
    values = plugrad.arange(BATCH) * 1.0

    def filled(value: Callable[[Any], Any]) -> Any:
        return plugrad.vmap(lambda x: x.new_zeros(2).fill_(value(x)))(values)

    assert bool((filled(lambda x: 7) == 7).all())
    assert bool((filled(lambda x: values[3]) == 3).all())
    assert bool((filled(lambda x: x) == values[:, None]).all())
    zero = plugrad.vmap(lambda x: plugrad.ones_like(x).zero_())(values)
    assert not bool(zero.any())
    with pytest.raises(RuntimeError, match="only supports 0-dimension value tensor but got tensor"):
        plugrad.vmap(lambda x: plugrad.ones_like(x).fill_(x))(plugrad.ones(3, 2))


@pytest.mark.parametrize("make", [lambda x: x.new_empty(4), plugrad.empty_like])
def test_memory_of_what_is_mapped_may_be_written_to(make: Callable[..., Any]) -> None:
    x = plugrad.rand(5, 4)
    assert bool((plugrad.vmap(lambda x: make(x).copy_(x))(x) == x).all())
    assert isinstance(make(x[0]), TensorBase)
