"""Checks what an operator writes to and what shares memory, against its schema."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.dispatch.schema import Argument, Return
from plugrad.library.kernels import share_memory
from plugrad.library.schemas import is_written, tensors_in
from plugrad.tensor.base import version_of
from plugrad.testing.opcheck.inputs import Call, OpCheckError, detached


def check_schema(call: Call) -> dict[str, str]:
    """OpCheckError if writes or shared memory are not as declared, or results vary."""
    with plugrad.no_grad():
        values = call.copies()
        before = [_bytes(tensors_in((value,))) for value in values]
        versions = [[version_of(tensor) for tensor in tensors_in((value,))] for value in values]
        out = call.run(values)
    _check_repeated(call, values, out)
    for number, argument in enumerate(call.op.schema.arguments):
        tensors: list[Any] = tensors_in((values[number],))
        changed = _bytes(tensors) != before[number]
        counted = [version_of(tensor) for tensor in tensors] != versions[number]
        _check_write(call, argument, bool(tensors), changed, counted)
    _check_results(call, out)
    _check_memory(call, values, out)
    return {}


def _check_repeated(call: Call, values: tuple[Any, ...], out: Any) -> None:
    if call.draws_random_numbers:
        return
    with plugrad.no_grad():
        others = call.copies()
        again = call.run(others)
    try:
        call.compare([*detached(again), *tensors_in(others)], [*detached(out), *tensors_in(values)])
    except AssertionError as error:
        raise OpCheckError(
            f"{call.op.qualified_name} gave other results when it was called again with the same "
            f"arguments: {error}\nLet them depend on the arguments only or, if it draws random "
            "numbers, define it with tags=plugrad.library.Tag.nondeterministic_seeded."
        ) from error


def _bytes(tensors: list[Any]) -> list[Any]:
    """What tensors hold, to the bit."""
    return [(tuple(t.shape), t.numpy(force=True).tobytes()) for t in tensors]


def _check_write(
    call: Call, argument: Argument, has_tensors: bool, changed: bool, counted: bool
) -> None:
    name = call.op.qualified_name
    if not is_written(argument):
        if changed or counted:
            what = "changed it" if changed else "counted a write to it"
            raise OpCheckError(
                f"the schema declares '{argument}', which is not written to, but {name} {what}. "
                f"Declare it as 'Tensor(a!) {argument.name}' (for custom_op: "
                f'mutates_args={{"{argument.name}"}}), or write to a clone of it.'
            )
    elif has_tensors and not counted:
        raise OpCheckError(
            f"the schema declares that {name} writes to '{argument}', but its version counter "
            "stays the same, so that autograd would not notice the write. A kernel for the key "
            "ADInplaceOrView has to call plugrad.autograd.graph.increment_version."
        )


def _check_results(call: Call, out: Any) -> None:
    returns = call.op.schema.returns
    found = () if out is None else out if len(returns) > 1 else (out,)
    if not isinstance(found, tuple) or len(found) != len(returns):
        count = len(found) if isinstance(found, tuple) else 1
        raise OpCheckError(
            f"the schema declares {len(returns)} results, {call.op.qualified_name} returned "
            f"{count}: {call.op.schema_text}"
        )
    for number, (returned, value) in enumerate(zip(returns, found, strict=True)):
        tensor_like = isinstance(value, plugrad.Tensor | list | tuple)
        if (returned.type.base == "Tensor") != tensor_like:
            raise OpCheckError(
                f"the schema declares result {number} as '{returned}', {call.op.qualified_name} "
                f"returned {type(value).__name__}"
            )


def _may_share(a: Argument | Return, b: Return) -> bool:
    first, second = a.type.alias, b.type.alias
    if first is None or second is None:
        return False
    return bool({*first.before, *first.after} & {*second.before, *second.after, "*"})


def _check_memory(call: Call, values: tuple[Any, ...], out: Any) -> None:
    schema = call.op.schema
    name = call.op.qualified_name
    results = out if len(schema.returns) > 1 else (out,)
    seen: list[tuple[int, Return, Any]] = []
    for number, (returned, value) in enumerate(zip(schema.returns, results, strict=False)):
        for tensor in tensors_in((value,)):
            for argument, given in zip(schema.arguments, values, strict=True):
                _check_pair(name, number, returned, tensor, argument, given)
            for other, earlier, result in seen:
                if share_memory(tensor, result) and not _may_share(earlier, returned):
                    raise OpCheckError(
                        f"results {other} and {number} of {name} share memory, which the schema "
                        f"does not declare: {call.op.schema_text}. Return a clone of one."
                    )
            seen.append((number, returned, tensor))


def _check_pair(
    name: str, number: int, returned: Return, tensor: Any, argument: Argument, given: Any
) -> None:
    for source in tensors_in((given,)):
        if not share_memory(tensor, source):
            continue
        if not _may_share(argument, returned):
            raise OpCheckError(
                f"the schema declares result {number} as '{returned}', memory of its own, but "
                f"{name} returned {'' if tensor is source else 'a view of '}its argument "
                f"'{argument.name}'. Return a clone, or declare 'Tensor(a) {argument.name}' and "
                "'-> Tensor(a)'."
            )
        if tensor is source and not is_written(argument):
            raise OpCheckError(
                f"{name} returned its argument '{argument.name}' itself, although it is not "
                "declared to be written to. Return a view of it: x.view_as(x)."
            )
