"""The kernels at the key `Sharded`: a rule determines the placements that a call needs, then the
operator runs on this rank's parts.

    mul(S(0), P(sum))     the rule of `mul` has the choices  R R -> R   S(0) S(0) -> S(0)   R P -> P
         |                the one that costs least here:     S(0) S(0) -> S(0)
    redistribute          P(sum) -> S(0) is a reduce_scatter
         |
    mul on the parts      at the key of their device
         |
    a DTensor             S(0)

Operators composed of others need no rule, because the others have theirs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray, row_major
from plugrad_distributed.tensor.backend import NAME, as_tensor, mesh_at, write_back
from plugrad_distributed.tensor.placement import Partial, Placement, Placements, Replicate
from plugrad_distributed.tensor.plans import Plan, flat, make_plan
from plugrad_distributed.tensor.redistribution import redistribute_local
from plugrad_distributed.tensor.spec import DTensorSpec, Rule, spec_of, specs_in

__all__ = ["Call", "Kernel", "implicit_replication", "in_place", "run"]

# Plans by operator and arguments; cleared when there are too many.
MOST_PLANS = 4096

_state = threading.local()
_plans: dict[Any, Plan] = {}
_inputs_in_place: dict[Any, list[Placements] | None] = {}


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """A block in which plain tensors in calls with DTensors count as replicated.

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

    def __init__(self, op: Any, plan: Plan) -> None:
        self.op = op
        self.args = plan.args
        self.mesh = plan.mesh
        self.plan = plan
        self.moved = False


def _array(op: Any, value: Tensor, mesh: DeviceMesh) -> ShardedArray:
    """The array for a tensor in a call on a mesh.

    Raises:
        RuntimeError: it is a plain tensor with several elements.
    """
    array = value.array
    if isinstance(array, ShardedArray):
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


def _same_mesh(op: Any, array: ShardedArray, mesh: DeviceMesh) -> None:
    """Whether an array is on a mesh.

    Raises:
        RuntimeError: it is on another one.
    """
    if array.mesh is not mesh and array.mesh != mesh:
        raise RuntimeError(
            f"{op.qualified_name}: all DTensors must be on one mesh, got {mesh!r} and "
            f"{array.mesh!r}"
        )


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
        found = array.spec = spec_of(
            array.mesh, array.placements, array.shape, array.steps, array.dtype
        )
    return found


def _swapped(args: Any, replace: Any, kind: type) -> list[Any]:
    """Arguments with objects of a class replaced, also inside lists."""
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


def _read(op: Any, args: Any, mesh: DeviceMesh | None, arrays: list[ShardedArray]) -> list[Any]:
    """The key of a plan; appends the arrays of the tensors to `arrays`."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, Tensor):
            array = value.array
            if not isinstance(array, ShardedArray):
                array = _array(op, value, _mesh_of(args) if mesh is None else mesh)
            arrays.append(array)
            found.append(array.spec or _spec(array))
        elif isinstance(value, (list, tuple)):
            if mesh is None and flat(value, Tensor):
                mesh = _mesh_of(args)
            found.append(tuple(_read(op, value, mesh, arrays)))
        elif isinstance(value, (int, float)):
            # True, 1 and 1.0 are equal, but lead to different plans.
            found.append((type(value), value))
        else:
            found.append(value)
    return found


def _plan(
    op: Any, rule: Rule, args: tuple[Any, ...], key: list[Any], arrays: Sequence[ShardedArray]
) -> Plan:
    try:
        found = _plans.get((op, rule, *key))
    except TypeError:  # unhashable
        return _new_plan(op, rule, args, arrays)
    if found is None:
        found = _new_plan(op, rule, args, arrays)
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        _plans[(op, rule, *key)] = found
    return found


def _new_plan(op: Any, rule: Rule, args: tuple[Any, ...], arrays: Sequence[ShardedArray]) -> Plan:
    mesh = _mesh_of(args)
    for array in arrays:
        _same_mesh(op, array, mesh)
    told = iter(arrays)
    return make_plan(op, rule, mesh, _swapped(args, lambda tensor: _spec(next(told)), Tensor))


def run(op: Any, rule: Rule, args: tuple[Any, ...]) -> Any:
    """Run a call by a rule."""
    arrays: list[ShardedArray] = []
    plan = _plan(op, rule, args, _read(op, args, None, arrays), arrays)
    if plan.stays:
        parts = [array.local for array in arrays]
    else:
        parts = [
            redistribute_local(array.local, array.mesh, array.placements, wanted, array.shape)
            for array, wanted in zip(arrays, plan.inputs, strict=True)
        ]
    if plan.places is None:
        given = iter(parts)
        local_args = _swapped(args, lambda tensor: next(given), Tensor)
    else:
        local_args = list(args)
        for place, part in zip(plan.places, parts, strict=True):
            local_args[place] = part
    moved = not plan.stays and arrays[0].placements != plan.inputs[0]
    if rule.local is None:
        out = op.call(tuple(local_args))
    else:
        call = Call(op, plan)
        out = rule.local(call, local_args)
        moved = moved or call.moved
    origin = None
    if plan.is_view and (moved or arrays[0].origin is not None):
        origin = (arrays[0], op, tuple(args[1:]))
    return _wrapped(plan, out, origin)


def _wrapped(plan: Plan, out: Any, origin: Any) -> Any:
    count = len(plan.outputs)
    if count == 1:
        return _made(plan, 0, out, origin)
    if count == 0:
        return None
    made = [_made(plan, number, result, origin) for number, result in enumerate(out)]
    return tuple(made) if type(out) in (tuple, list) else type(out)(*made)


def _made(plan: Plan, number: int, result: Any, origin: Any) -> Any:
    placements = plan.outputs[number]
    if isinstance(result, Tensor):
        spec = plan.specs[number]
        if spec is None or spec.dtype is not result.dtype:
            shape, steps = plan.shapes[number], plan.steps[number]
            size = tuple(result.shape) if shape is None else tuple(shape)
            strides = row_major(size) if steps is None else tuple(steps)
            spec = spec_of(plan.mesh, placements, size, strides, result.dtype)
            if shape is not None:
                plan.specs[number] = spec
        where = None if origin is None else (*origin, -1)
        return as_tensor(ShardedArray.of(result, spec, where))
    if isinstance(result, (list, tuple)):
        found = []
        shapes, steps = plan.shapes[number], plan.steps[number]
        shapes = [tuple(item.shape) for item in result] if shapes is None else shapes
        steps = [None] * len(result) if steps is None else steps
        for place, (item, size, step) in enumerate(zip(result, shapes, steps, strict=True)):
            where = None if origin is None else (*origin, place)
            found.append(as_tensor(ShardedArray(item, plan.mesh, placements, size, step, where)))
        return tuple(found) if isinstance(result, tuple) else found
    return result


class Kernel:
    """An operator's kernel at the key `Sharded`, from its rule."""

    def __init__(self, op: Any, rule: Rule) -> None:
        self.op = op
        self.rule = rule

    def __call__(self, keyset: int, *args: Any) -> Any:
        return run(self.op, self.rule, args)


def in_place(op: Any, functional: Any, rule: Rule, args: tuple[Any, ...]) -> Any:
    """Run a call that writes to its first argument: on the parts if the other arguments can be
    redistributed to fit the target, else by writing the functional operator's result."""
    target = args[0]
    array = target.array
    if not isinstance(array, ShardedArray):
        raise RuntimeError(
            f"{op.qualified_name}: a DTensor cannot be written into a plugrad.Tensor; "
            "full_tensor() gives the whole, to_local() this rank's part"
        )
    arrays: list[ShardedArray] = []
    wanted = _inputs(op, rule, args, _read(op, args, None, arrays), arrays)
    if functional is None and wanted is None:
        return _write_whole(op, target, array, arrays, args)
    if wanted is None:
        result = functional.call(args)
        _write(op, array, result.array)
        return target
    parts = iter(
        [
            redistribute_local(one.local, one.mesh, one.placements, placements, one.shape)
            for one, placements in zip(arrays, wanted, strict=True)
        ]
    )
    op.call(tuple(_swapped(args, lambda tensor: next(parts), Tensor)))
    if array.origin is not None:
        write_back(array)
    return target


def _inputs(
    op: Any, rule: Rule, args: tuple[Any, ...], key: list[Any], arrays: Sequence[ShardedArray]
) -> list[Placements] | None:
    """`_inputs_for`, cached."""
    whole_key: Any = (op, rule, *key)
    try:
        if whole_key in _inputs_in_place:
            return _inputs_in_place[whole_key]
    except TypeError:  # unhashable
        whole_key = None
    for array in arrays:
        _same_mesh(op, array, arrays[0].mesh)
    told = iter(arrays)
    specs = _swapped(args, lambda tensor: _spec(next(told)), Tensor)
    found = _inputs_for(rule, specs, arrays[0].placements)
    if whole_key is not None:
        if len(_inputs_in_place) >= MOST_PLANS:
            _inputs_in_place.clear()
        _inputs_in_place[whole_key] = found
    return found


def _inputs_for(rule: Rule, specs: list[Any], target: Placements) -> list[Placements] | None:
    """Placements of all tensors for which the result has the target's placements."""
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
