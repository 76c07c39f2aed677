"""Batching rules against a loop: the calls of operators that samples lead to, each as a batch.

A sample is run once, with its gradients; what operators it calls, at any depth, is noted. A rule is
then tried on each of these calls, mapped over the first or last dimension of all tensors, of one
alone, or of all but one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.levels.randomness import draws
from plugrad.ops.batching import VmapInfo, rule_of
from plugrad.tensor.base import TensorBase
from plugrad.testing.assert_close import assert_close
from plugrad.testing.cases import Arguments, OpCase, OpSample, flatten, resolve, seed_of

BATCH = 3
# They take positions in memory, which are relative to the first one for elements of a batch.
_SPECIAL = ("_as_strided", "_as_strided_")

# What cannot be done for a batch, such as what gives each element another shape.
_REFUSAL = "vmap: |vmap-ing|to vmap over|Batch norm got a batched tensor"
# What gives elements that no two calls need to agree on.
_ANY_ELEMENTS = ("empty_like", "new_empty")


@dataclass
class OpCall:
    """An operator with all its arguments, in the order of its schema."""

    op: Operator
    values: tuple[Any, ...]

    @property
    def written(self) -> list[int]:
        """Which arguments it writes to."""
        aliases = [argument.type.alias for argument in self.op.schema.arguments]
        return [index for index, alias in enumerate(aliases) if alias and alias.is_write]

    @property
    def is_view(self) -> bool:
        aliases = [argument.type.alias for argument in self.op.schema.returns]
        return any(alias is not None and not alias.is_write for alias in aliases)

    def signature(self) -> str:
        """A text that distinguishes it from other calls of the operator."""

        def told(value: Any) -> str:
            if isinstance(value, TensorBase):
                return f"{value.dtype}{value.shape}{value.stride()}"
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(map(told, value))}]"
            return repr(value)

        return f"{self.op.full_name}({', '.join(map(told, self.values))})"


class _Listener(Trace):
    """Keeps the calls of operators that have a rule, with copies of their tensors."""

    def __init__(self) -> None:
        super().__init__(current_state().trace)
        self.calls: dict[str, OpCall] = {}

    def dispatch(self, kind: str, op: Operator, keyset: Any, args: tuple[Any, ...]) -> Any:
        if kind == "call" and rule_of(op) is not None and _is_determined(op):
            call = OpCall(op, args)
            signature = call.signature()
            if signature not in self.calls:
                state = current_state()
                state.trace, kept = None, state.trace
                self.calls[signature] = OpCall(op, _mapped(_copy, args))
                state.trace = kept
        return super().dispatch(kind, op, keyset, args)


def _is_determined(op: Operator) -> bool:
    return op.full_name not in (*_ANY_ELEMENTS, *_SPECIAL) and not draws(op)


def in_place_twin(call: OpCall) -> OpCall | None:
    """The same call of the operator in place, if there is one with a rule that it fits."""
    op = call.op
    name = f"{op.namespace}::{op.name}_"
    twin = find_operator(f"{name}.{op.overload}" if op.overload else name)
    first = call.values[0] if call.values else None
    if twin is None or rule_of(twin) is None or not isinstance(first, TensorBase):
        return None
    with plugrad.no_grad():
        result = op.call(_mapped(_copy, call.values))
    fits = result.shape == first.shape and result.dtype is first.dtype
    return OpCall(twin, call.values) if fits else None


def on_device(call: OpCall, device: str) -> OpCall:
    """The same call with tensors of another backend."""
    return OpCall(call.op, _mapped(lambda tensor: tensor.to(device), call.values))


def calls_of(case: OpCase, sample: OpSample, dtype: str) -> dict[str, OpCall]:
    """The calls that a sample and its gradients lead to, by signature."""
    made = Arguments(dtype, seed_of(case, sample), overlapping=False)
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    listener = _Listener()
    state = current_state()
    before = state.trace
    state.trace = listener
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = flatten(resolve(case.op)(*args, **kwargs))
            wanted = [item for item in outputs if getattr(item, "requires_grad", False)]
            if case.gradient and wanted:
                weights = [plugrad.ones_like(item) for item in wanted]
                plugrad.autograd.grad(wanted, made.leaves, weights, allow_unused=True)
    finally:
        state.trace = before
    return listener.calls


def check(call: OpCall) -> None:
    """AssertionError if the rule gives something else than a loop, for some choice of in_dims."""
    with plugrad.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for in_dims in _choices(call):
            try:
                _check(call, in_dims)
            except Exception as error:
                raise AssertionError(f"{call.signature()}, in_dims={in_dims}") from error


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone()


def _mapped(function: Any, value: Any) -> Any:
    if isinstance(value, TensorBase):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(function, item) for item in value)
    return value


def _dims(value: Any, dim: int) -> Any:
    if isinstance(value, TensorBase):
        return value.ndim if dim < 0 else 0
    if isinstance(value, (list, tuple)) and any(isinstance(item, TensorBase) for item in value):
        return [_dims(item, dim) for item in value]
    return None


def _choices(call: OpCall) -> Iterator[tuple[Any, ...]]:
    for dim in (0, -1):
        yield tuple(_dims(value, dim) for value in call.values)
    tensors = [index for index, value in enumerate(call.values) if _dims(value, 0) is not None]
    if len(tensors) < 2:
        return
    some = [[chosen] for chosen in tensors]
    if len(tensors) > 2:
        some += [[other for other in tensors if other != left_out] for left_out in tensors]
    for dim, chosen in zip((0, -1) * len(tensors), some, strict=False):
        if call.written and not set(chosen) & set(call.written):
            continue  # a batch does not fit into what is not mapped
        yield tuple(
            _dims(value, dim) if index in chosen else None
            for index, value in enumerate(call.values)
        )


def _check(call: OpCall, in_dims: tuple[Any, ...]) -> None:
    turns = [
        tuple(
            value if dim is None else _mapped(lambda tensor: _other(tensor, number), value)  # noqa: B023
            for value, dim in zip(call.values, in_dims, strict=True)
        )
        for number in range(BATCH)
    ]
    batched = tuple(
        _stacked([values[place] for values in turns], dim) for place, dim in enumerate(in_dims)
    )
    # Of views the tensors themselves, since whether one is possible may depend on strides.
    source = batched if call.is_view else _mapped(_copy, batched)
    rule: Any = rule_of(call.op)
    try:
        expected = [
            call.op.call(tuple(map(partial(_element, number), source, in_dims)))
            for number in range(BATCH)
        ]
    except (RuntimeError, IndexError):
        with pytest.raises((RuntimeError, IndexError)):
            rule(VmapInfo(BATCH), in_dims, *batched)
        return
    try:
        found = rule(VmapInfo(BATCH), in_dims, *batched)
    except RuntimeError as error:
        if re.search(_REFUSAL, str(error)) is None:
            raise
        return
    if found is NotImplemented:
        # Left to the parts, in a level that runs.
        found = plugrad.vmap(lambda *args: call.op.call(args), in_dims)(*batched), 0
        if isinstance(found[0], (tuple, list)):
            found = found[0], [0] * len(found[0])
    output, out_dims = found
    if call.is_view:
        base = batched[0]
        for item, alone in zip(flatten(output), flatten(expected[0]), strict=True):
            if alone._is_view():
                assert item is base or item._is_view(), "no view"
                assert item._version == base._version
    if call.written:
        assert output is batched[0], "not the tensor that was written"
    _compare(output, out_dims, expected)


def _other(tensor: Any, number: int) -> Any:
    """Other values for every element of the batch, among those that the operator takes."""
    if not number:
        return _copy(tensor)
    return tensor.reshape(-1).roll(number).reshape(tensor.shape).clone()


def _element(number: int, value: Any, dim: Any) -> Any:
    if isinstance(dim, list):
        return [_element(number, item, place) for item, place in zip(value, dim, strict=True)]
    return value if dim is None else value.select(dim, number)


def _stacked(values: list[Any], dim: Any) -> Any:
    if dim is None:
        return _mapped(_copy, values[0])
    if isinstance(dim, list):
        columns = zip(*values, strict=True)
        return [_stacked(list(items), place) for items, place in zip(columns, dim, strict=True)]
    return plugrad.stack(values, dim)


def _compare(output: Any, out_dims: Any, expected: list[Any]) -> None:
    if isinstance(expected[0], (tuple, list)):
        assert len(output) == len(expected[0])
        assert len(output) == len(out_dims)
        for number, (item, dim) in enumerate(zip(output, out_dims, strict=True)):
            _compare(item, dim, [result[number] for result in expected])
        return
    if not isinstance(expected[0], TensorBase):
        assert output == expected[0]
        return
    wanted = plugrad.stack(expected, 0) if out_dims is not None else expected[0]
    found = output if out_dims is None else output.movedim(out_dims, 0)
    assert_close(found, wanted, equal_nan=True)
