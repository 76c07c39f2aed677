"""The tape: a captured step as a flat list of calls of kernels on arrays.

Kernels are looked up once. If a wrapper would only pass on arrays, the tape calls the kernel;
otherwise it calls the wrapper, on tensors made for it. Results of kernels that take `out=` are
written into an arena, where values that are not needed at the same time share memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import active_backends
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.keys import BACKEND_MASK, DENSE_BIT
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope, Undone
from plugrad.tensor.base import TensorBase, make_tensor, sizes_of
from plugrad.tensor.interop.arrays import host_array
from plugrad.transforms.capture.errors import CaptureError
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Node, Ref
from plugrad.transforms.capture.undo import copied, silently
from plugrad.transforms.lowering.arena import Plan, takes_out
from plugrad.transforms.lowering.joining import Groups, with_joined
from plugrad.transforms.lowering.kernel_calls import (
    TEMPORARY,
    Call,
    Lowerer,
    Product,
    Unlowered,
    simplest,
    without_copy,
)
from plugrad.transforms.lowering.step import Step

ONLY_DENSE = BACKEND_MASK | DENSE_BIT


class below_autograd(Scope):
    """Context manager: operators that kernels call go to the backend, without listeners."""

    def read(self, state: LocalState) -> Any:
        return state.kept, state.grad_enabled

    def change(self, state: LocalState) -> None:
        state.kept &= ONLY_DENSE
        state.grad_enabled = False

    def restore(self, state: LocalState, before: Any) -> None:
        state.kept, state.grad_enabled = before


class Tape:
    """A captured step, lowered: called with arrays and numbers, it returns the list of results.

    Attributes:
        source: the Python that runs.
        direct: how many calls are kernels' own; `wrapped`: how many go through tensors; `elided`:
            how many copies were not needed, since their sources are not used again.
        joined: how many operators one call computes together with others.
        arena: how many bytes of memory one run has for its results; `unplanned`: how many it
            would take if each value had its own.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self.direct = 0
        self.wrapped = 0
        self.elided = 0
        self.joined = 0
        self._joined: dict[str, tuple[Node, Call]] = {}
        self._dense = step.active.tensor_keyset & ONLY_DENSE
        self._lowerer = Lowerer(step.active, self._dense)
        self._names: dict[str, Any] = {}
        self._contexts: list[Any] = []
        self._pool: list[Callable[..., Any]] = []
        self._lock = threading.Lock()
        self._generators = _states(step)
        with silently(), below_autograd(), Undone(self._restore_generators):
            self._lower()
        # What belongs to the call that was captured does not live on.
        del self.step, self._generators, self._metas, self._lowerer, self._joined

    def _restore_generators(self) -> None:
        for generator, state in self._generators:
            generator.set_state(state)

    @property
    def arena(self) -> int:
        return self._plan.size

    @property
    def unplanned(self) -> int:
        return self._plan.total

    def __call__(self, *inputs: Any) -> list[Any]:
        try:
            run = self._pool.pop()
        except IndexError:
            run = self._instance()
        try:
            found: list[Any] = run(*inputs)
            return found
        finally:
            self._pool.append(run)

    # Lowering: each node runs once, on copies, to see what its kernel returns.

    def _lower(self) -> None:
        step = self.step
        self._metas = _known_metas(step)
        lines, values = self._walk(step.graph)
        found = self._groups([calls for _, calls, _ in lines], values)
        if found is not None:
            try:
                self._lower_joined(*found, values)
                return
            except CaptureError:  # not the same bits
                self.joined, self._joined = 0, {}
                lines, values = self._walk(step.graph)
        self._write(lines)
        self._check(values)

    def _walk(self, graph: Graph) -> tuple[list[tuple[Node, Any, list[str]]], dict[str, Any]]:
        """Run all nodes; for each its calls or lines, and what all values are then."""
        step = self.step
        self.direct = self.wrapped = self.elided = 0
        self._names = {"DECLINED": DECLINED}
        self._contexts = []
        self._restore_generators()
        scratch = {name: copied(each) for name, each in step.examples.items()}
        values: dict[str, Any] = dict(graph.constants) | scratch
        for name, value in graph.constants.items():
            if name not in step.examples and name not in step.numbers:
                self._bind(f"v_{name}", value.array if isinstance(value, TensorBase) else value)
        self._plan = Plan(graph, step.results, step.active)
        lines: list[tuple[Node, Any, list[str]]] = []
        for number, node in enumerate(graph.nodes):
            lines.append((node, *self._node(number, node, values)))
        self._plan.finish()
        return lines, values

    def _groups(
        self, calls: list[Any], values: dict[str, Any]
    ) -> tuple[dict[str, tuple[Node, Call]], set[str]] | None:
        """Calls to be joined, by the names of their last nodes, and the names of the others."""
        groups = Groups(self.step, calls, values)
        nodes = self.step.graph.nodes
        joined: dict[str, tuple[Node, Call]] = {}
        gone: set[str] = set()
        for numbers in groups.found():
            made = groups.joined(numbers)
            if made is not None:
                joined[made[0].name] = made
                gone.update([nodes[number].name for number in numbers[:-1]])
        return (joined, gone) if joined else None

    def _lower_joined(
        self, joined: dict[str, tuple[Node, Call]], gone: set[str], values: dict[str, Any]
    ) -> None:
        self._joined = joined
        lines, _ = self._walk(with_joined(self.step.graph, joined, gone))
        self.joined = len(gone) + len(joined)
        self._write(lines)
        self._check(values)

    def _node(self, number: int, node: Node, values: dict[str, Any]) -> Any:
        """The calls of a node; None and lines where it is called on tensors."""
        if node.name in self._joined:
            return self._joined_call(number, node, values)
        source = self._copied_last(number, node, values)
        if source is not None:
            self.elided += 1
            values[str(node.results[0])] = values[source]
            return None, [f"v_{node.results[0]} = v_{source}"]
        given = tuple([_resolved(value, values) for value in node.values])
        refs = tuple([self._marked(value) for value in node.values])
        try:
            calls: Any = self._lowerer.calls(node.op.op, refs, given)
            calls, results = self._run(calls, node, values)
        except Unlowered:
            self.wrapped += 1
            kernel = node.op.op.lookup(self._dense)
            found = kernel(self._dense, *given)
            results = [found] if node.single else list(found or ())
            lines = self._on_tensors(number, node, kernel)
            self._take(node, results, values)
            return None, lines
        self.direct += 1
        self._take(node, results, values)
        last = calls[-1]
        planned = len(results) == 1 and node.single and not last.writes
        planned = planned and (last.takes_out or takes_out(last.function))
        if planned and node.results[0] in node.defines():
            self._plan.add(number, str(node.results[0]), results[0].array, last.function)
        return calls, []

    def _joined_call(self, number: int, node: Node, values: dict[str, Any]) -> Any:
        call = self._joined[node.name][1]
        found = call.function(*[self._array(value, values, None) for value in call.arguments])
        meta, name = node.metas[0], str(node.results[0])
        if found is DECLINED or meta is None:
            raise CaptureError(f"{node.op.op.name}() and the calls fused with it were declined")
        active = self.step.active
        values[name] = make_tensor(found, meta.dtype, meta.device, active.tensor_keyset)
        self._plan.add(number, name, found, call.function)
        self.direct += 1
        return [call], []

    @staticmethod
    def _fits_target(node: Node, values: dict[str, Any]) -> bool:
        """Whether the result of a node in place has its target's shape and dtype."""
        target = values[node.writes[0]] if node.writes else None
        meta = node.metas[0] if node.metas else None
        return (
            isinstance(target, TensorBase)
            and meta is not None
            and (sizes_of(target), target.dtype) == (meta.shape, meta.dtype)
        )

    def _copied_last(self, number: int, node: Node, values: dict[str, Any]) -> str | None:
        """What a node copies, if nothing else needs it or has its memory."""
        if node.op.op.qualified_name != "plugrad::clone" or not self._plan.ends(number, node):
            return None
        source = str(node.reads()[0])
        array = values[source].array
        own = isinstance(array, np.ndarray) and array.flags.owndata
        if not own or self._plan.has(source) or node.values[1] is not None:
            return None
        if array.copy("K").strides != array.strides:
            return None
        for name, other in values.items():
            if name != source and isinstance(other, TensorBase):
                there = other.array
                if not isinstance(there, np.ndarray) or np.may_share_memory(array, there):
                    return None
        return source

    def _run(
        self, calls: list[Call], node: Node, values: dict[str, Any]
    ) -> tuple[list[Call], list[Any]]:
        """Run a node's calls; returns the simplified calls and the node's results.

        Raises:
            Unlowered: they give something else.
        """
        made: list[Call] = []
        calls = without_copy(calls, self._fits_target(node, values))
        target: Any = None
        out: Any = None
        if any(call.writes for call in calls):
            target = values[node.writes[0]] if node.writes else None
            if target is None or node.results[:1] != node.writes[:1]:
                raise Unlowered
        for given in calls:
            arguments = [self._array(value, values, out) for value in given.arguments]
            call, arguments = simplest(given, arguments, self.step.numbers)
            found = _run_once(call, arguments)
            if found is DECLINED and call.otherwise is not None:
                call = call.otherwise
                found = _run_once(call, [self._array(v, values, out) for v in call.arguments])
            if found is DECLINED:
                raise Unlowered
            out = found
            made.append(call)
        if calls[-1].writes:
            return made, [target]
        if not node.op.op.schema.returns:
            return made, [None]
        active = self.step.active
        results: list[Any] = []
        for item, meta in zip([out] if node.single else out, node.metas, strict=True):
            if meta is None or item is None:
                if meta is not None or item is not None:
                    raise Unlowered
                results.append(None)
                continue
            array = active.taken(item, node.op.op.qualified_name)
            if active.backend.dtype_of(array) is not meta.dtype or tuple(array.shape) != meta.shape:
                raise Unlowered
            results.append(make_tensor(array, meta.dtype, meta.device, active.tensor_keyset))
        return made, results

    def _array(self, value: Any, values: dict[str, Any], temporary: Any) -> Any:
        if isinstance(value, Product):
            return self._array(value.left, values, None) * self._array(value.right, values, None)
        if value is TEMPORARY:
            return temporary
        if isinstance(value, Ref):
            found = values[value.name]
            return found.array if isinstance(found, TensorBase) else float.__pos__(found)
        if isinstance(value, (list, tuple)):
            return type(value)([self._array(item, values, temporary) for item in value])
        return value

    @staticmethod
    def _take(node: Node, results: list[Any], values: dict[str, Any]) -> None:
        new = set(node.defines())
        for name, result, meta in zip(node.results, results, node.metas, strict=True):
            if name in new:
                if (
                    not isinstance(result, TensorBase)
                    or meta is None
                    or sizes_of(result) != meta.shape
                    or result.dtype is not meta.dtype
                ):
                    raise CaptureError(
                        f"{node.op.op.name}() gives other results when it runs again"
                    )
                values[name] = result

    def _marked(self, value: Any) -> Any:
        """Arguments with references to tensors and to numbers that are followed only."""
        if isinstance(value, Ref):
            known = self.step.graph.constants.get(value.name)
            if known is None or isinstance(known, TensorBase) or value.name in self.step.numbers:
                return value
            return known
        if isinstance(value, (list, tuple)):
            return type(value)([self._marked(item) for item in value])
        return value

    # Python

    def _bind(self, name: str, value: Any) -> str:
        self._names[name] = value
        return name

    def _on_tensors(self, number: int, node: Node, kernel: Any) -> list[str]:
        function = self._bind(f"k{number}", kernel)
        arguments = ", ".join(
            [str(int(self._dense)), *[self._tensor_text(number, value) for value in node.values]]
        )
        new = set(node.defines())
        if not new:
            return [f"{function}({arguments})"]
        if node.single:
            return [f"v_{node.results[0]} = {function}({arguments})._backend_array"]
        lines = [f"r = {function}({arguments})"]
        for position, name in enumerate(node.results):
            if name in new:
                lines.append(f"v_{name} = r[{position}]._backend_array")
        return [*lines, "r = None"]

    def _tensor_text(self, number: int, value: Any) -> str:
        if isinstance(value, Ref):
            meta = self._metas.get(value.name)
            if meta is None:
                return f"v_{value.name}"
            self._names["make_tensor"] = make_tensor
            dtype = self._bind(f"d_{meta.dtype.name}", meta.dtype)
            device = self._bind(f"p_{str(meta.device).replace(':', '_')}", meta.device)
            keyset = int(self.step.active.tensor_keyset)
            return f"make_tensor(v_{value.name}, {dtype}, {device}, {keyset})"
        if isinstance(value, (list, tuple)):
            items = [self._tensor_text(number, item) for item in value]
            return _sequence(value, items)
        return self._constant(number, value)

    def _constant(self, number: int, value: Any) -> str:
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        return self._bind(f"o{number}_{len(self._names)}", value)

    def _text(self, number: int, value: Any) -> str:
        if isinstance(value, Product):
            return f"{self._text(number, value.left)} * {self._text(number, value.right)}"
        if value is TEMPORARY:
            return "t"
        if isinstance(value, Ref):
            return f"v_{value.name}"
        if isinstance(value, (list, tuple)) and any(_has_ref(item) for item in value):
            return _sequence(value, [self._text(number, item) for item in value])
        return self._constant(number, value)

    def _write(self, lines: list[tuple[Node, Any, list[str]]]) -> None:
        step = self.step
        inputs = [*step.examples, *step.numbers]
        needed = {*step.results}
        dropped: list[list[str]] = []
        for node, _, _ in reversed(lines):
            last = {*node.reads(), *node.defines()} - needed
            needed |= last
            dropped.append([name for name in last if name not in step.graph.constants])
        body: list[str] = []
        for number, (node, calls, text) in enumerate(lines):
            body += text if calls is None else self._lines(number, node, calls)
            gone = [f"v_{name}" for name in dropped[-1 - number] if name not in step.numbers]
            if gone:
                body.append("del " + ", ".join(sorted(gone)))
        body.append(f"return [{', '.join(f'v_{name}' for name in step.results)}]")
        parameters = ", ".join(f"v_{name}" for name in inputs)
        buffers = ", ".join(f"b{number}" for number in range(len(self._plan.parts)))
        self.source = "\n".join(
            [
                f"def make({buffers}):",
                f"    def tape({parameters}):",
                *[f"        {line}" for line in body],
                "    return tape",
            ]
        )
        names = dict(self._names)
        exec(compile(self.source, f"<tape of {step.graph.name}>", "exec"), names)
        self._make = names["make"]

    def _lines(self, number: int, node: Node, calls: list[Call]) -> list[str]:
        lines: list[str] = []
        for position, call in enumerate(calls):
            last = position == len(calls) - 1
            planned = last and node.single and bool(node.defines())
            buffer = self._plan.buffer(str(node.results[0])) if planned else None
            text = self._call_text(number, position, call, buffer)
            if call.otherwise is not None:
                other = call.otherwise
                writes = buffer if other.takes_out or takes_out(other.function) else None
                otherwise = self._call_text(number, len(calls) + position, other, writes)
                lines += [f"r = {text}", f"if r is NotImplemented: r = {otherwise}"]
                text = "r"
            if not last:
                lines.append(f"t = {text}")
            elif call.writes:
                lines.append(text)
            elif node.single:
                lines.append(self._single(node, text, buffer is not None))
            else:
                lines += self._several(node, text)
        if len(calls) > 1:
            lines.append("t = None")
        if any(call.otherwise is not None for call in calls):
            lines.append("r = None")
        return lines

    def _call_text(self, number: int, position: int, call: Call, buffer: int | None) -> str:
        if call.context is not None and call.context not in self._contexts:
            self._contexts.append(call.context)
        function = self._bind(f"f{number}_{position}", call.function)
        arguments = [self._text(number, value) for value in call.arguments]
        if call.into:
            arguments[-1] = f"out={arguments[-1]}"
        if buffer is not None:
            arguments.append(f"out=b{buffer}")
        return f"{function}({', '.join(arguments)})"

    def _single(self, node: Node, text: str, planned: bool) -> str:
        name, meta = node.results[0], node.metas[0]
        if name not in node.defines():
            return text
        if not planned and meta is not None and meta.shape == ():
            taken = self._bind("taken", self.step.active.taken)
            text = f"{taken}({text}, {node.op.op.qualified_name!r})"
        return f"v_{name} = {text}"

    def _several(self, node: Node, text: str) -> list[str]:
        new = set(node.defines())
        left = [f"v_{name}" if name in new else "_" for name in node.results]
        lines = [f"{', '.join(left)}{',' if len(left) == 1 else ''} = {text}"]
        for name, meta in zip(node.results, node.metas, strict=True):
            if name in new and meta is not None and meta.shape == ():
                taken = self._bind("taken", self.step.active.taken)
                lines.append(f"v_{name} = {taken}(v_{name}, {node.op.op.qualified_name!r})")
        return lines

    # Running

    def _instance(self) -> Callable[..., Any]:
        """The tape with an arena and a context of its own, for one run at a time."""
        run: Callable[..., Any] = self._make(*self._plan.allocate())
        if self._contexts:
            context = self._contexts[0].copy()

            def in_context(*inputs: Any) -> Any:
                return enter(run, *inputs)

            enter = context.run
            return in_context
        return run

    def _check(self, values: dict[str, Any]) -> None:
        """Run the tape as it is; it must give what the nodes gave one by one."""
        self._restore_generators()
        scratch = {name: copied(each) for name, each in self.step.examples.items()}
        inputs = [each.array for each in scratch.values()]
        inputs += [float.__pos__(values[name]) for name in self.step.numbers]
        self._pool.append(self._instance())
        pairs = list(zip(self.step.results, self(*inputs), strict=True))
        if any(self._plan.holds(array) for _, array in pairs):
            raise CaptureError("a result is in memory that later runs use")
        pairs += [(name, each.array) for name, each in scratch.items()]
        for name, array in pairs:
            wanted = values[name]
            other = make_tensor(array, wanted.dtype, wanted.device, self.step.active.tensor_keyset)
            if not _alike(host_array(wanted), host_array(other)):
                raise CaptureError(f"the tape gives another {name} than the operators")
        # A run keeps none of these.
        self._pool.clear()


def _run_once(call: Call, arguments: list[Any]) -> Any:
    given, into = (arguments[:-1], {"out": arguments[-1]}) if call.into else (arguments, {})
    if call.context is None:
        return call.function(*given, **into)
    return call.context.copy().run(call.function, *given, **into)


def _alike(a: Any, b: Any) -> bool:
    """Whether two arrays are equal bit for bit, or are both nan."""
    if a.dtype.kind in "fc":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(a.tobytes() == b.tobytes())


def _known_metas(step: Step) -> dict[str, Any]:
    """What has the dtype and the device of each value that is a tensor."""
    graph = step.graph
    found: dict[str, Any] = {
        name: value
        for name, value in (*graph.constants.items(), *step.examples.items())
        if isinstance(value, TensorBase)
    }
    for node in graph.nodes:
        for name, meta in zip(node.results, node.metas, strict=True):
            if name is not None and meta is not None:
                found.setdefault(name, meta)
    return found


def _states(step: Step) -> list[tuple[Any, Any]]:
    """All random generators that a step may use, with their current states."""
    found = [
        active.generator(index)
        for active in active_backends()
        for index in range(active.backend.device_count())
    ]
    found += [each for each in step.graph.constants.values() if hasattr(each, "get_state")]
    return [(generator, generator.get_state()) for generator in found]


def _resolved(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, Ref):
        return values[value.name]
    if isinstance(value, (list, tuple)):
        return type(value)([_resolved(item, values) for item in value])
    return value


def _has_ref(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_ref(item) for item in value)
    return isinstance(value, (Ref, Product))


def _sequence(value: Any, items: list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
