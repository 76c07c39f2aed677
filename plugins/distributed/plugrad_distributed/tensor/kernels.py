"""The kernels at the key `Sharded`: a rule says which placements a call needs, then the operator
runs on this rank's parts.

    mul(S(0), P(sum))     the rule of `mul` has the choices  R R -> R   S(0) S(0) -> S(0)   R P -> P
         |                the one that costs least here:     S(0) S(0) -> S(0)
    redistribute          P(sum) -> S(0) is a reduce_scatter
         |
    mul on the parts      at the key of their device
         |
    a DTensor             S(0)

What is composed of other operators needs no rule, since these have theirs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import NAME, as_tensor, mesh_at, write_back
from plugrad_distributed.tensor.placement import Partial, Placement, Placements, Replicate
from plugrad_distributed.tensor.plans import Plan, flat, make_plan
from plugrad_distributed.tensor.redistribution import redistribute_local
from plugrad_distributed.tensor.spec import DTensorSpec, Rule, specs_in

__all__ = ["Call", "Kernel", "implicit_replication", "in_place", "run"]

# Plans by operator and arguments; they are forgotten when there are too many.
MOST_PLANS = 4096

_state = threading.local()
_plans: dict[Any, Plan] = {}


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """While it is entered, tensors of one rank count as replicated where they meet DTensors.

    >>> from plugrad.distributed.tensor.experimental import implicit_replication
    >>> with implicit_replication():
    ...     pass
    """
    before = getattr(_state, "implicit", False)
    _state.implicit = True
    try:
        yield
    finally:
        _state.implicit = before


class Call:
    """A call on DTensors that is about to run on this rank's parts.

    Attributes:
        op: the operator.
        args: its arguments, with specs in place of tensors.
        mesh: the ranks.
        plan: the placements.
        moved: whether the result of a view shares no memory with its source; set by rules.
    """

    def __init__(self, op: Any, args: list[Any], mesh: DeviceMesh, plan: Plan) -> None:
        self.op = op
        self.args = args
        self.mesh = mesh
        self.plan = plan
        self.moved = False


def _array(op: Any, value: Tensor, mesh: DeviceMesh) -> ShardedArray:
    """What stands for a tensor in a call on a mesh.

    Raises:
        RuntimeError: it is a tensor of this rank with several elements, or lies on another mesh.
    """
    array = value.array
    if isinstance(array, ShardedArray):
        if array.mesh is not mesh and array.mesh != mesh:
            raise RuntimeError(
                f"{op.qualified_name}: all DTensors must be on one mesh, got {mesh!r} and "
                f"{array.mesh!r}"
            )
        return array
    if value.numel() != 1 and not getattr(_state, "implicit", False):
        raise RuntimeError(
            f"{op.qualified_name}: got mixed plugrad.Tensor and DTensor, need to convert all "
            "plugrad.Tensor to DTensor before calling distributed operators!"
        )
    local = value.detach()
    if value.ndim:
        local = local.to(mesh.device_type)
    return ShardedArray(local, mesh, (Replicate(),) * mesh.ndim, tuple(value.shape))


def _mesh_of(args: tuple[Any, ...]) -> DeviceMesh:
    for tensor in flat(args, Tensor):
        if isinstance(tensor.array, ShardedArray):
            return tensor.array.mesh
    for value in args:
        if isinstance(value, plugrad.device) and value.type == NAME:
            return mesh_at(value.index or 0)
    raise RuntimeError("a call at the key Sharded without a DTensor or a mesh's device")


def _spec(array: ShardedArray) -> DTensorSpec:
    found: DTensorSpec | None = array.spec
    if found is None:
        found = array.spec = DTensorSpec(
            array.mesh, array.placements, array.shape, array.steps, array.dtype
        )
    return found


def _swapped(args: Any, replace: Any, kind: type) -> list[Any]:
    """Arguments with objects of a class replaced, those in lists too."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, kind):
            found.append(replace(value))
        elif isinstance(value, (list, tuple)) and any(isinstance(item, kind) for item in value):
            items = [replace(item) if isinstance(item, kind) else item for item in value]
            found.append(tuple(items) if isinstance(value, tuple) else items)
        else:
            found.append(value)
    return found


def _key(op: Any, mesh: DeviceMesh, args: list[Any]) -> Any:
    """What a plan depends on; None if that cannot be told."""

    def one(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(one(item) for item in value)
        return value if isinstance(value, DTensorSpec) else (type(value), value)

    key = (op.qualified_name, mesh, one(args))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _plan(op: Any, rule: Rule, mesh: DeviceMesh, args: list[Any]) -> Plan:
    key = _key(op, mesh, args)
    found = None if key is None else _plans.get((key, id(rule)))
    if found is None:
        found = make_plan(op, rule, mesh, args)
        if key is not None:
            if len(_plans) >= MOST_PLANS:
                _plans.clear()
            _plans[key, id(rule)] = found
    return found


def run(op: Any, rule: Rule, args: tuple[Any, ...]) -> Any:
    """Do a call by a rule."""
    mesh = _mesh_of(args)
    arrays = [_array(op, tensor, mesh) for tensor in flat(args, Tensor)]
    told = iter(arrays)
    specs = _swapped(args, lambda tensor: _spec(next(told)), Tensor)
    plan = _plan(op, rule, mesh, specs)
    parts = iter(
        [
            redistribute_local(array.local, mesh, array.placements, wanted, array.shape)
            for array, wanted in zip(arrays, plan.inputs, strict=True)
        ]
    )
    local_args = _swapped(args, lambda tensor: next(parts), Tensor)
    call = Call(op, specs, mesh, plan)
    out = op.call(tuple(local_args)) if rule.local is None else rule.local(call, local_args)
    origin = None
    moved = call.moved or bool(arrays and arrays[0].placements != plan.inputs[0])
    if op.schema.is_view and (moved or arrays[0].origin is not None):
        origin = (arrays[0], op, tuple(args[1:]))
    return _wrapped(call, out, origin)


def _wrapped(call: Call, out: Any, origin: Any) -> Any:
    if not call.op.schema.returns:
        return None
    several = len(call.op.schema.returns) > 1
    results = tuple(out) if several else (out,)
    plan = call.plan
    made = [
        _made(call, result, placements, shape, steps, origin)
        for result, placements, shape, steps in zip(
            results, plan.outputs, plan.shapes, plan.steps, strict=True
        )
    ]
    if not several:
        return made[0]
    return tuple(made) if type(out) in (tuple, list) else type(out)(*made)


def _made(
    call: Call, result: Any, placements: Placements, shape: Any, steps: Any, origin: Any
) -> Any:
    if isinstance(result, Tensor):
        where = None if origin is None else (*origin, -1)
        shape = result.shape if shape is None else shape
        return as_tensor(ShardedArray(result, call.mesh, placements, shape, steps, where))
    if isinstance(result, (list, tuple)):
        found = []
        shape = [tuple(item.shape) for item in result] if shape is None else shape
        steps = [None] * len(result) if steps is None else steps
        for number, (item, size, step) in enumerate(zip(result, shape, steps, strict=True)):
            where = None if origin is None else (*origin, number)
            array = ShardedArray(item, call.mesh, placements, size, step, where)
            found.append(as_tensor(array))
        return tuple(found) if isinstance(result, tuple) else found
    return result


class Kernel:
    """An operator's kernel at the key `Sharded`, by its rule."""

    def __init__(self, op: Any, rule: Rule) -> None:
        self.op = op
        self.rule = rule

    def __call__(self, keyset: int, *args: Any) -> Any:
        return run(self.op, self.rule, args)


def in_place(op: Any, functional: Any, rule: Rule, args: tuple[Any, ...]) -> Any:
    """Do a call that writes to its first argument: on the parts if the others can be brought to
    the target's placements, else the functional operator's result is written."""
    target = args[0]
    array = target.array
    if not isinstance(array, ShardedArray):
        raise RuntimeError(
            f"{op.qualified_name}: a DTensor cannot be written into a plugrad.Tensor; "
            "full_tensor() gives the whole, to_local() this rank's part"
        )
    mesh = array.mesh
    arrays = [_array(op, tensor, mesh) for tensor in flat(args, Tensor)]
    told = iter(arrays)
    specs = _swapped(args, lambda tensor: _spec(next(told)), Tensor)
    wanted = _inputs_for(rule, specs, array.placements)
    if functional is None and wanted is None:
        return _write_whole(op, target, array, arrays, args)
    if wanted is None:
        result = functional.call(args)
        _write(op, array, result.array)
        return target
    parts = iter(
        [
            redistribute_local(one.local, mesh, one.placements, placements, one.shape)
            for one, placements in zip(arrays, wanted, strict=True)
        ]
    )
    op.call(tuple(_swapped(args, lambda tensor: next(parts), Tensor)))
    write_back(array)
    return target


def _inputs_for(rule: Rule, specs: list[Any], target: Placements) -> list[Placements] | None:
    """Placements of all tensors with which the result lies as the target does."""
    tensors = specs_in(specs)
    if rule.local is not None or any(isinstance(one, Partial) for one in target):
        return None
    choices = rule.choices(*specs)
    columns: list[list[Any]] = []
    for placement in target:
        if isinstance(placement, Replicate):
            columns.append([Replicate()] * len(tensors))
            continue
        for outputs, inputs in choices:
            if outputs[0] == placement:
                found = flat(list(inputs), Placement)
                if found[0] == placement:
                    columns.append(found)
                    break
        else:
            return None
    return [tuple(column[number] for column in columns) for number in range(len(tensors))]


def _write(op: Any, target: ShardedArray, result: ShardedArray) -> None:
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    if not plugrad.can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {target.dtype}"
        )
    local = redistribute_local(
        result.local, target.mesh, result.placements, target.placements, target.shape
    )
    target.local.copy_(local)
    write_back(target)


def _write_whole(
    op: Any, target: Tensor, array: ShardedArray, arrays: list[ShardedArray], args: tuple[Any, ...]
) -> Tensor:
    """Gather all tensors, write, and keep this rank's part."""
    mesh = array.mesh
    everywhere = (Replicate(),) * mesh.ndim
    wholes = [
        redistribute_local(one.local, mesh, one.placements, everywhere, one.shape) for one in arrays
    ]
    if wholes[0] is array.local:
        wholes[0] = array.local.clone()
    given = iter(wholes)
    op.call(tuple(_swapped(args, lambda tensor: next(given), Tensor)))
    _write(op, array, ShardedArray(wholes[0], mesh, everywhere, array.shape))
    return target
