"""The kernel at the key `Sharded` for operators without a rule.

Elementwise operators, including plugins', share one rule. All others get whole tensors,
with a warning at the first call. Operators composed of others need neither, unless the composition
reads the elements on the host.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.kernels import in_place, run
from plugrad_distributed.tensor.plans import flat
from plugrad_distributed.tensor.rules.on_demand import GATHERED, RULES
from plugrad_distributed.tensor.rules.pointwise import STRUCTURES, pointwise
from plugrad_distributed.tensor.spec import Rule

__all__ = ["Fallback"]

# The tags of operators for which the core promotes and broadcasts, whoever defines them.
ELEMENTWISE = Rule(pointwise)
NO_RULE = Rule(lambda *args: ())


class Fallback:
    """The function for `Library.fallback`."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def precedes(self, op: Any) -> bool:
        """Whether it is called even for operators composed of others."""
        if op.structure in STRUCTURES:
            return True
        return op.namespace == "plugrad" and (op.full_name in RULES or op.full_name in GATHERED)

    def __call__(self, op: Any, keyset: int, *args: Any) -> Any:
        """Call an operator.

        Raises:
            TypeError: it is a collective.
            NotImplementedError: it writes to other arguments than the first, and not all ranks have
                them whole.
        """
        in_first = op.schema.is_inplace
        rule = ELEMENTWISE if op.structure in STRUCTURES else _on_demand(op)
        if rule is not None:
            return in_place(op, _functional(op), rule, args) if in_first else run(op, rule, args)
        if op.namespace == "distributed":
            raise TypeError(
                f"{op.qualified_name}: collectives take the tensors of ranks, got a DTensor: call "
                "to_local(), or redistribute() to move it"
            )
        if op.schema.mutates and not in_first:
            _refuse_parts(op, args)
        self._warn(op.qualified_name)
        return in_place(op, None, NO_RULE, args) if in_first else run(op, NO_RULE, args)

    def _warn(self, name: str) -> None:
        if name in self._warned:
            return
        self._warned.add(name)
        warnings.warn(
            f"DTensor: there is no propagation rule for {name}, so its tensors are gathered on "
            "every rank. plugrad.distributed.tensor.experimental.register_sharding gives it one",
            UserWarning,
            stacklevel=3,
        )


def _on_demand(op: Any) -> Rule | None:
    return RULES.get(op.full_name) if op.namespace == "plugrad" else None


@functools.cache
def _functional(op: Any) -> Any:
    """The out-of-place counterpart of an operator; None if there is none."""
    packet = getattr(getattr(plugrad.ops, op.namespace), op.name.removesuffix("_"), None)
    found = None if packet is None else getattr(packet, op.overload or "default", None)
    return None if found is None else found.op


def _refuse_parts(op: Any, args: tuple[Any, ...]) -> None:
    """An operator's writes to copies of whole tensors would be lost."""
    for tensor in flat(args, Tensor):
        array = tensor.array
        if isinstance(array, ShardedArray) and not all(
            one.is_replicate() for one in array.placements
        ):
            raise NotImplementedError(
                f"{op.qualified_name}: writes to several arguments are possible if each rank has "
                f"the whole of all tensors, got one with the placements {array.placements}"
            )
