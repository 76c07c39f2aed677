"""A captured step: the compiled program, and code that puts its results back into tensors.

Every step pays for that code, so it consists of a few passes over flat lists.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.extend.core
import jax.numpy as jnp

from plugrad.plugins.compiling.roots import Roots
from plugrad.plugins.tracing import (
    HAS_GRAD,
    IS_CONJ,
    IS_NEG,
    REQUIRES_GRAD,
    arrays_of,
    cell_of,
    drop_gradients,
    put_arrays,
    put_gradients,
    situation,
)
from plugrad_jax.capture.changes import TENSOR, Call, Place, Traced, with_sharers
from plugrad_jax.capture.numbers import DeviceNumber
from plugrad_jax.capture.placement import Placement
from plugrad_jax.devices import all_devices
from plugrad_jax.generator import JaxGenerator
from plugrad_jax.sharding.mixing import SPREAD
from plugrad_jax.sharding.placing import part_here

Array = Any

_SITUATIONS: Final = {
    HAS_GRAD: "has a gradient",
    REQUIRES_GRAD: "requires grad",
    IS_CONJ: "is a conjugate view",
    IS_NEG: "is a negative view",
}


class Stale(Exception):  # no error: it means that the step must be traced again
    """The arrays differ from those that were traced; the text says how."""


OTHER_SHAPES: Final = "tensors of the state have other shapes or dtypes"
SPREAD_NOW: Final = "tensors are spread over devices now"


class Held:
    """An object with one attribute, as a tensor has its array."""

    array: Any


def _references() -> int:
    """The reference count of an array that only one tensor has, measured as in `Program.inputs`."""
    held = Held()
    held.array = object()
    arrays = [held.array]
    return next(map(sys.getrefcount, arrays[:1]))


OF_ONE_TENSOR: Final = _references()


class Program:
    """One trace of a step, compiled.

    Inputs are in this order: tensors with donated arrays, other tensors, the arguments' tensors and
    arrays, generators' keys, numbers. Results follow `Changes`.

    Args:
        traced: the result of the trace.
        call: the call that was traced.
        donate: whether the arrays of tensors that are written to may be used up.
    """

    def __init__(self, traced: Traced, call: Call, donate: bool) -> None:
        changes = traced.changes
        self.roots: Roots = traced.roots
        self.changes = changes
        self._donate = donate
        self._arguments = {id(tensor): number for number, tensor in enumerate(call.tensors)}
        written = {id(tensor) for tensor, _ in changes.writes}
        places: list[tuple[int, int]] = []
        for number, source in enumerate(traced.sources):
            places.append((self._kind(source, written if donate else set()), number))
        order = [number for _, number in sorted(places)]
        sources = [traced.sources[number] for number in order]
        kinds = sorted(kind for kind, _ in places)
        self.donated = kinds.count(0)
        self.tensors: list[Any] = [s for s, kind in zip(sources, kinds, strict=True) if kind < 2]
        self.argument_tensors: list[int] = [
            self._arguments[id(s)] for s, kind in zip(sources, kinds, strict=True) if kind == 2
        ]
        self.argument_arrays: list[int] = [s.number for s in sources if isinstance(s, Place)]
        self.generators: list[Any] = [s for s in sources if isinstance(s, JaxGenerator)]
        self.numbers: list[DeviceNumber] = [s for s in sources if isinstance(s, DeviceNumber)]
        self._expected = [OF_ONE_TENSOR] * self.donated
        self._own_watched = [t for t in traced.watched if id(t) not in self._arguments]
        self._own_ids = frozenset(map(id, self._own_watched))
        self._overlap = {
            number: tensor
            for number, tensor in enumerate(call.tensors)
            if id(tensor) in self.roots.names
        }
        self._situation = situation(self._own_watched)
        self._take_changes()
        self._compile(traced, order)

    def _kind(self, source: Any, written: set[int]) -> int:
        if isinstance(source, TENSOR):
            if id(source) in self._arguments:
                return 2
            return 0 if id(source) in written else 1
        if isinstance(source, Place):
            return 3
        return 4 if isinstance(source, JaxGenerator) else 5

    def _take_changes(self) -> None:
        changes = self.changes
        self._written = [tensor for tensor, _ in changes.writes]
        self._write_counts = [count for _, count in changes.writes]
        self._graded = changes.new_grads
        self._first_rest = len(self._written) + len(self._graded)
        self._changes_arguments = any(
            id(tensor) in self._arguments
            for tensor in (*self._written, *self._graded, *changes.dropped_grads)
        )

    def _compile(self, traced: Traced, order: list[int]) -> None:
        closed = traced.jaxpr
        jaxpr = closed.jaxpr
        program = jax.extend.core.ClosedJaxpr(
            jaxpr.replace(
                invars=[jaxpr.invars[number] for number in order],
                debug_info=jaxpr.debug_info.with_unknown_names(),
            ),
            closed.consts,
        )
        self._runs = Placement(len(program.jaxpr.outvars), traced.mesh, traced.place)
        self.jaxpr = program
        expected = [(v.aval.shape, v.aval.dtype) for v in program.jaxpr.invars]
        run: Callable[..., list[Array]] = jax.extend.core.jaxpr_as_fun(program)

        def step(*arrays: Array) -> list[Array]:
            if [(array.shape, array.dtype) for array in arrays] != expected:
                raise Stale(OTHER_SHAPES)
            return run(*arrays)

        donated = list(range(self.donated))
        if self._donate:
            grown = [number for number, _ in self.changes.counts]
            first = len(order) - len(self.numbers)
            donated += [first + at for at, number in enumerate(self.numbers) if number in grown]
        self._jit = functools.partial(jax.jit, step, donate_argnums=tuple(donated))
        self.compiled: Callable[..., list[Array]] = self._jit()
        # By where the results go: inputs may be spread in one call, and not in the next.
        self._by_results: dict[tuple[Any, ...], Callable[..., list[Array]]] = {}

    # Running

    def fits(self, call: Call) -> bool:
        """Whether everything that the trace depended on is unchanged, apart from the arguments'
        types."""
        return self.roots.same_objects() and self.same_situation(call)

    def same_situation(self, call: Call) -> bool:
        """Whether the tensors require grad, and have gradients, as they did."""
        tensors = call.tensors
        for number, tensor in self._overlap.items():
            if tensors[number] is not tensor:
                return False
        return situation(self._own_watched) == self._situation and self._own_ids.isdisjoint(
            map(id, tensors)
        )

    def difference(self, call: Call) -> str:
        """What is another situation than it was when the step was traced."""
        now = situation(self._own_watched)
        for tensor, before, after in zip(self._own_watched, self._situation, now, strict=True):
            if before != after:
                name = self.roots.names.get(id(tensor), f"a tensor of shape {tuple(tensor.shape)}")
                for bit, what in _SITUATIONS.items():
                    if (before ^ after) & bit:
                        return f"{name} {what} {'now' if after & bit else 'no longer'}"
        return "other arguments are tensors of the state"

    def inputs(self, call: Call) -> list[Array] | None:
        """The arrays of this call; None if the numbers of an optimizer no longer agree."""
        arrays = arrays_of(self.tensors)
        donated = self.donated
        if donated and list(map(sys.getrefcount, arrays[:donated])) != self._expected:
            self._protect(arrays)
        given = call.tensors
        for number in self.argument_tensors:
            arrays.append(given[number].array)
        for number in self.argument_arrays:
            arrays.append(call.arrays[number])
        for generator in self.generators:
            arrays.append(generator.key)
        for place in self.numbers:
            value = place.read()
            if value is None:
                return None
            arrays.append(value)
        return arrays

    def _protect(self, arrays: list[Array]) -> None:
        """Donate copies of arrays that have other references, too."""
        for number in range(self.donated):
            array = arrays[number]
            arrays[number] = None
            tensor = self.tensors[number]
            shared = cell_of(tensor) is not None
            # It has the tensor, the name `array`, and the call.
            if shared or sys.getrefcount(array) > 3:
                array = jnp.copy(array)
            arrays[number] = array

    def run(self, call: Call, arrays: list[Array]) -> Any:
        """Run the program, and give the tensors their new arrays.

        Raises:
            Stale: arrays have other shapes or dtypes, or are spread over devices and were not.
        """
        results = self._spread(call, arrays) if SPREAD.used else self.compiled(*arrays)
        changes = self.changes
        written, graded, dropped = self._written, self._graded, changes.dropped_grads
        if self._changes_arguments:
            written = [self._now(tensor, call) for tensor in written]
            graded = [self._now(tensor, call) for tensor in graded]
            dropped = [self._now(tensor, call) for tensor in dropped]
        put_arrays(written, results, self._write_counts)
        if graded:
            put_gradients(graded, results[len(written) : self._first_rest])
        if dropped:
            drop_gradients(dropped)
        return self._others(call, results)

    def _spread(self, call: Call, arrays: list[Array]) -> list[Array]:
        """Run the program where some array of this process is spread over devices."""
        runs = self._runs
        if not runs.look_at(arrays):
            return self.compiled(*arrays)
        if not runs.anywhere:
            raise Stale(SPREAD_NOW)
        first = [self._now(tensor, call) for tensor in (*self._written, *self._graded)]
        if runs.settle(first):
            self.compiled = self._placed(tuple(runs.results))
        return self.compiled(*runs.joined(arrays))

    def _placed(self, results: tuple[Any, ...]) -> Callable[..., list[Array]]:
        """The program with its results in certain places."""
        found = self._by_results.get(results)
        if found is None:
            found = self._jit(out_shardings=list(results))
            self._by_results[results] = found
        return found

    def _now(self, tensor: Any, call: Call) -> Any:
        number = self._arguments.get(id(tensor))
        return tensor if number is None else call.tensors[number]

    def _others(self, call: Call, results: list[Array]) -> Any:
        changes = self.changes
        for tensor, flag in changes.flags:
            self._now(tensor, call).requires_grad_(flag)
        for tensor, grad in changes.kept_grads:
            self._now(tensor, call).grad = grad
        for holder, key, value in changes.places:
            if value is None:
                del holder[key]
            else:
                holder[key] = value.make(results, call.tensors)
        spread = self._runs.mesh is not None
        for number, result in changes.counts:
            # It may be read on other devices next.
            number.advance(None if spread else results[result])
        for generator, result in changes.generators:
            key = results[result]
            generator.key = part_here(key, all_devices()[generator.index]) if spread else key
        return changes.returned.make(results, call.tensors)

    # Finding the same objects in other places

    def moved(self, roots: Roots) -> None:
        """Use the result of a later walk with the same signature."""
        former = self.roots
        pairs = [
            *zip(with_sharers(former.tensors), with_sharers(roots.tensors), strict=True),
            *zip(former.all_holders(), roots.all_holders(), strict=True),
            *zip(former.numbers(), roots.numbers(), strict=True),
        ]
        for old, new in zip(former.numbers(), roots.numbers(), strict=True):
            new.take_over(old)
        other = {id(old): new for old, new in pairs}

        def now(value: Any) -> Any:
            return other.get(id(value), value)

        self.tensors = list(map(now, self.tensors))
        self.numbers = list(map(now, self.numbers))
        self._written = list(map(now, self._written))
        self._graded = list(map(now, self._graded))
        self._own_watched = list(map(now, self._own_watched))
        self._own_ids = frozenset(map(id, self._own_watched))
        self.changes.move(now)
        self.roots = roots
