"""Rules of operators that draw random numbers, by the thread's `randomness`.

"error" raises, "different" draws for each element of the batch, "same" draws once for all of them.
If no argument is mapped over, `levels/randomness.py` does the same without a rule.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.creation import operator_named
from plugrad.ops.batching.dims import (
    first_of,
    logical_rank,
    logical_sizes,
    padded,
    spread,
    to_front,
)
from plugrad.ops.batching.folding import merged, split
from plugrad.ops.batching.table import NO_RANDOMNESS
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _differs(info: VmapInfo) -> bool:
    """Whether each element of the batch draws its own; RuntimeError if none may."""
    if info.randomness == "error":
        raise RuntimeError(NO_RANDOMNESS)
    return info.randomness == "different"


def check_different(info: VmapInfo) -> None:
    """RuntimeError unless the elements draw their own, where the distribution is mapped over."""
    if not _differs(info):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input."
        )


def _like(name: str) -> Rule:
    """The rule of a factory that takes its size from a tensor."""
    function = operator_named(name)

    def rule(info: VmapInfo, dims: Dims, self: Tensor, *args: Any) -> tuple[Any, Any]:
        if _differs(info):
            return function(to_front(self, dims[0]), *args), 0
        return function(first_of(self, dims[0]), *args), None

    return rule


def of_probabilities(name: str) -> Rule:
    """The rule of an operator that draws from the distributions in one tensor."""
    function = operator_named(name)

    def rule(info: VmapInfo, dims: Dims, self: Tensor, *args: Any) -> tuple[Any, Any]:
        check_different(info)
        return function(to_front(self, dims[0]), *args), 0

    return rule


def multinomial(info: VmapInfo, dims: Dims, self: Tensor, *args: Any) -> tuple[Any, Any]:
    function = operator_named("multinomial")
    check_different(info)
    rows = to_front(self, dims[0])
    if rows.ndim != 3:
        return function(rows, *args), 0
    drawn = function(merged(rows, 0, 0), *args)
    return split(drawn, 0, info.batch_size, sizes_of(rows)[1]), 0


def normal(info: VmapInfo, dims: Dims, mean: Any, std: Any, generator: Any) -> tuple[Any, Any]:
    check_different(info)
    given = [
        (value, dim) for value, dim in zip((mean, std), dims, strict=False) if _is_tensor(value)
    ]
    rank = max([logical_rank(value, dim) for value, dim in given])
    parameters = [
        padded(spread(value, dim, info.batch_size), 0, rank) if _is_tensor(value) else value
        for value, dim in zip((mean, std), dims, strict=False)
    ]
    return F.normal(*parameters, generator=generator), 0


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def native_dropout(
    info: VmapInfo, dims: Dims, input: Tensor, p: float, train: bool | None, generator: Any
) -> tuple[Any, Any]:
    if train is False or _differs(info):
        front = to_front(input, dims[0])
        return F.native_dropout(front, p, train, generator=generator), (0, 0)
    one = F.ones(logical_sizes(input, dims[0]), dtype=input.dtype, device=input.device)
    _, kept = F.native_dropout(one, p, train, generator=generator)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return (F.native_dropout_backward(to_front(input, dims[0]), kept, scale), kept), (0, None)


def in_place(name: str) -> Rule:
    """The rule of an operator that fills a tensor."""
    function = operator_named(name)

    def rule(info: VmapInfo, dims: Dims, self: Tensor, *args: Any) -> tuple[Any, Any]:
        given = dims[1] if _is_tensor(args[0]) else None
        if given is not None:
            check_different(info)
            args = (padded(args[0], given, logical_rank(self, dims[0])), *args[1:])
        if _differs(info):
            function(to_front(self, dims[0]), *args)
        else:
            drawn = F.empty(logical_sizes(self, dims[0]), dtype=self.dtype, device=self.device)
            to_front(self, dims[0]).copy_(function(drawn, *args))
        return self, dims[0]

    return rule


RULES: Final[dict[str, Rule]] = {
    "bernoulli": of_probabilities("bernoulli"),
    "bernoulli.p": of_probabilities("bernoulli.p"),
    **{
        name: in_place(name)
        for name in (
            "bernoulli_.float",
            "bernoulli_.Tensor",
            "exponential_",
            "normal_",
            "random_",
            "random_.from",
            "random_.to",
            "uniform_",
        )
    },
    "multinomial": multinomial,
    "native_dropout": native_dropout,
    "normal.float_Tensor": normal,
    "normal.Tensor_float": normal,
    "normal.Tensor_Tensor": normal,
    "rand_like": _like("rand_like"),
    "randint_like": _like("randint_like"),
    "randint_like.low_dtype": _like("randint_like.low_dtype"),
    "randn_like": _like("randn_like"),
}
