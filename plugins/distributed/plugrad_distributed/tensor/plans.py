"""The placements of a call: the cheapest choice for each dimension of the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins import OperatorNotFoundError
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.placement import Placement, Placements, Replicate, Shard
from plugrad_distributed.tensor.redistribution import cost_of
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, replicated, specs_in

__all__ = ["Plan", "flat", "make_plan", "results_on_meta"]


@dataclass(eq=False, slots=True)
class Plan:
    """How a call runs.

    Attributes:
        mesh: the ranks.
        args: the arguments of the call, with specs in place of tensors.
        inputs: placements of the tensors among the arguments, in order.
        stays: whether the tensors already have these placements.
        places: their positions among the arguments; None if some are in lists.
        outputs: placements of the results.
        shapes, steps: shapes and strides of the results; lists of them for results that are lists.
            None if they equal each rank's result.
        is_view: whether results are views of the first argument.
        specs: the specs of tensor results, once they have been made.
    """

    mesh: DeviceMesh
    args: Sequence[Any]
    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    shapes: tuple[Any, ...]
    steps: tuple[Any, ...]
    is_view: bool
    stays: bool
    places: tuple[int, ...] | None
    specs: list[DTensorSpec | None]


def flat(values: Sequence[Any], kind: type) -> list[Any]:
    """The objects of a class among values and in lists, in order."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(item for item in value if isinstance(item, kind))
    return found


def make_plan(op: Any, rule: Rule, mesh: DeviceMesh, args: Sequence[Any]) -> Plan:
    """The plan for a call.

    Args:
        args: the arguments of the call, with specs in place of tensors.
    """
    specs = specs_in(args)
    choices = rule.choices(*args)
    shapes, steps = _geometry(op, rule, args, bool(choices))
    count = len(op.schema.returns)
    choices = [*choices, ([Replicate()] * count, replicated(args))]
    columns = [_cheapest(op, choices, specs, mesh_dim, count) for mesh_dim in range(mesh.ndim)]
    inputs = tuple(tuple(column[1][number] for column in columns) for number in range(len(specs)))
    outputs = tuple(tuple(column[0][number] for column in columns) for number in range(count))
    stays = all(spec.placements == one for spec, one in zip(specs, inputs, strict=True))
    places = tuple(n for n, value in enumerate(args) if isinstance(value, DTensorSpec))
    return Plan(
        *(mesh, args, inputs, outputs, shapes, steps, op.schema.is_view, stays),
        places if len(places) == len(specs) else None,
        [None] * count,
    )


def _geometry(
    op: Any, rule: Rule, args: Sequence[Any], needed: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Shapes and strides of the whole results; None if they are not known in advance, which
    matters only if results may be sharded.

    Raises:
        RuntimeError: they are needed, and the operator has no fake.
    """
    count = len(op.schema.returns)
    unknown = (None,) * count
    if rule.shapes is not None:
        return tuple(rule.shapes(*args)), unknown
    try:
        results = results_on_meta(op, args)
    except (NotImplementedError, OperatorNotFoundError) as error:
        if needed:
            raise RuntimeError(
                f"DTensor: the shapes of the results of {op.qualified_name} are not known, so they "
                "cannot be cut: plugrad.library.register_fake defines them"
            ) from error
        return unknown, unknown
    except Exception:
        if needed:
            raise
        return unknown, unknown  # the call itself raises the error
    shapes = tuple(_each(one, lambda tensor: tuple(tensor.shape)) for one in results)
    return shapes, tuple(_each(one, lambda tensor: tuple(tensor.stride())) for one in results)


def _each(result: Any, of: Any) -> Any:
    if isinstance(result, Tensor):
        return of(result)
    if isinstance(result, (list, tuple)):
        return [of(item) for item in result]
    return None


def _cheapest(
    op: Any,
    choices: Sequence[Choice],
    specs: Sequence[DTensorSpec],
    mesh_dim: int,
    count: int,
) -> tuple[list[Placement], list[Placement]]:
    best: tuple[list[Placement], list[Placement]] | None = None
    least = float("inf")
    for outputs, inputs in choices:
        wanted = flat(list(inputs), Placement)
        if len(wanted) != len(specs) or len(outputs) != count:
            raise ValueError(
                f"a rule of {op.qualified_name} must give {count} output placements and one for "
                f"each of the {len(specs)} tensors among its arguments, got {(outputs, inputs)}"
            )
        cost = 0.0
        for spec, after in zip(specs, wanted, strict=True):
            if isinstance(after, Shard) and not 0 <= after.dim < spec.ndim:
                raise ValueError(
                    f"a rule of {op.qualified_name} requests {after!r} of a tensor of {spec.ndim} "
                    "dimensions"
                )
            cost += cost_of(spec.placements[mesh_dim], after, spec.numel())
        if cost < least:
            best, least = ([one or Replicate() for one in outputs], wanted), cost
    assert best is not None
    return best


def results_on_meta(op: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """The operator's results for whole tensors without data, which have the shapes."""

    def stand_in(value: Any) -> Any:
        if isinstance(value, DTensorSpec):
            return plugrad.empty_strided(value.shape, value.steps, dtype=value.dtype, device="meta")
        if isinstance(value, (list, tuple)) and flat(value, DTensorSpec):
            items = [stand_in(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, plugrad.device):
            return plugrad.device("meta")
        return value

    with plugrad.no_grad():
        out = op.call(tuple(stand_in(value) for value in args))
    return tuple(out) if len(op.schema.returns) > 1 else (out,)
