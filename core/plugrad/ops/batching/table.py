"""The table of batching rules, which each family of operators adds its part to."""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from plugrad.dispatch.operator import Operator

Rule = Callable[..., tuple[Any, Any]]


@dataclass(frozen=True)
class VmapInfo:
    """What a rule is told beside the arguments.

    Attributes:
        batch_size: length of the dimension that is mapped over.
        randomness: "error", "different" or "same": whether the elements of the batch may draw
            random numbers, and whether they draw the same ones.
    """

    batch_size: int
    randomness: str = "error"


# By full name ("sum", "add.Tensor"), or by base name for all overloads without one of their own.
_RULES: Final[dict[str, Rule]] = {}


def rule_of(op: Operator) -> Rule | None:
    """An operator's batching rule; None if it has none, and is mapped by its decomposition."""
    found = _RULES.get(op.full_name)
    return _RULES.get(op.name) if found is None else found
