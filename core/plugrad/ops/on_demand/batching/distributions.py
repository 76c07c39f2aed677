"""Rules of drawing from distributions."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import logical_rank, padded, spread
from plugrad.ops.batching.random import check_different, in_place, of_probabilities

if TYPE_CHECKING:
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def binomial(info: VmapInfo, dims: Dims, count: Any, prob: Any, generator: Any) -> tuple[Any, Any]:
    check_different(info)
    rank = max(logical_rank(count, dims[0]), logical_rank(prob, dims[1]))
    trials, chances = (
        padded(spread(value, dim, info.batch_size), 0, rank)
        for value, dim in zip((count, prob), dims, strict=False)
    )
    return F.binomial(trials, chances, generator=generator), 0


RULES: Final[dict[str, Rule]] = {
    **{
        name: of_probabilities(name) for name in ("_sample_dirichlet", "_standard_gamma", "poisson")
    },
    "binomial": binomial,
    **{name: in_place(name) for name in ("cauchy_", "geometric_", "log_normal_")},
}
