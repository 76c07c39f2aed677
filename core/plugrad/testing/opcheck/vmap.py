"""Checks an operator's rule for batches against a loop over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plugrad
from plugrad.library.vmap import VmapRule, get_vmap_rule
from plugrad.ops.batching import VmapInfo
from plugrad.tensor.base import TensorBase
from plugrad.testing.opcheck.inputs import Call, OpCheckError, Skipped

_BATCH = 3


def check_vmap(call: Call) -> dict[str, str]:
    """OpCheckError if the rule gives something else than a loop."""
    rule = get_vmap_rule(call.op)
    if rule is None:
        raise Skipped("no rule is registered with register_vmap")
    if not call.tensors:
        raise Skipped("there is no tensor to map over")
    if call.draws_random_numbers:
        raise Skipped("it draws random numbers")
    with plugrad.no_grad():
        for in_dims in _choices(call.values):
            _check(call, rule, in_dims)
    return {}


def _choices(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Which dimensions to map over: the first or last of all tensors, of one tensor alone."""
    for dim in (0, -1):
        yield tuple(_dims(value, dim) for value in values)
    tensors = [index for index, value in enumerate(values) if _dims(value, 0) is not None]
    if len(tensors) > 1:
        for chosen in tensors:
            yield tuple(
                _dims(value, 0) if index == chosen else None for index, value in enumerate(values)
            )


def _dims(value: Any, dim: int) -> Any:
    if isinstance(value, TensorBase):
        return value.ndim if dim < 0 else 0
    if isinstance(value, list) and any(isinstance(item, TensorBase) for item in value):
        return [_dims(item, dim) for item in value]
    return None


def _check(call: Call, rule: VmapRule, in_dims: tuple[Any, ...]) -> None:
    slices = [call.copies() for _ in range(_BATCH)]
    for number, values in enumerate(slices):
        for value in values:
            _shift(value, number)
    batched = tuple(
        _stacked([values[place] for values in slices], dim) for place, dim in enumerate(in_dims)
    )
    # What is not mapped over is the same in every turn of the loop.
    turns = [
        tuple(
            values[place] if dim is not None else slices[0][place]
            for place, dim in enumerate(in_dims)
        )
        for values in slices
    ]
    expected = [call.run(values) for values in turns]
    output, out_dims = rule.apply(VmapInfo(_BATCH), in_dims, batched)
    where = f"the vmap rule of {call.op.qualified_name}, for in_dims={in_dims},"
    _compare(call, where, output, out_dims, expected)


def _shift(value: Any, number: int) -> None:
    """Other values for every slice, among those that the operator takes."""
    if isinstance(value, list):
        for item in value:
            _shift(item, number)
    elif isinstance(value, TensorBase) and number:
        tensor: Any = value
        tensor.copy_(tensor.reshape(-1).roll(number).reshape(tensor.shape).clone())


def _stacked(values: list[Any], dim: Any) -> Any:
    if dim is None:
        return values[0]
    if isinstance(dim, list):
        columns = zip(*values, strict=True)
        return [_stacked(list(items), place) for items, place in zip(columns, dim, strict=True)]
    return plugrad.stack(values, dim)


def _compare(call: Call, where: str, output: Any, out_dims: Any, expected: list[Any]) -> None:
    if isinstance(output, tuple | list):
        for number, (item, dim) in enumerate(zip(output, out_dims, strict=True)):
            turns = [result[number] for result in expected]
            _compare(call, f"{where} result {number},", item, dim, turns)
        return
    if not isinstance(output, plugrad.Tensor):
        return
    for number, wanted in enumerate(expected):
        found = output if out_dims is None else output.select(out_dims, number)
        try:
            call.compare(found, wanted)
        except AssertionError as error:
            raise OpCheckError(
                f"{where} gives another result for element {number} of the batch than the operator "
                f"gives for it alone: {error}\nFix the rule: move the dimensions that in_dims "
                "names to one place, and say in out_dims where the result has it."
            ) from error
