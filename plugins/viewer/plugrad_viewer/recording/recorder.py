"""Recorder: the trace that writes down what happens, as it happens.

Here runs what slows a recorded program down, so it is kept short: what can be worked out at the
end, `recording.py` does.
"""

from __future__ import annotations

import threading
import time
from types import CodeType, FrameType
from typing import Any, Final

import plugrad
from plugrad.plugins.watching import Trace, history_of, leaf_of, sizes_of
from plugrad_viewer.recording.graph import Graph, size
from plugrad_viewer.recording.memory import Memory
from plugrad_viewer.recording.names import Names
from plugrad_viewer.recording.sources import Lines

_now: Final = time.perf_counter_ns
_thread: Final = threading.get_ident

# Tensors as a call saw them: name, shape, dtype, device.
Seen = tuple[str, tuple[int, ...], Any, Any]


class Call:
    """An operator that was called, or a custom Function's forward."""

    __slots__ = (
        *("end", "inputs", "module", "node", "number", "op", "outputs", "parent", "place"),
        *("start", "steps", "thread"),
    )

    def __init__(self, number: int, op: str, log: Log, parent: int) -> None:
        self.number = number
        self.op = op
        self.thread = log.number
        self.module = log.modules[-1]
        self.parent = parent
        self.place: tuple[str, int] | None = None
        self.inputs: list[Seen] = []
        self.outputs: list[Seen] = []
        # Of each: key, kernel, start, end, depth.
        self.steps: list[list[Any]] = []
        self.node = -1
        self.start = 0
        self.end = 0


class Log:
    """What one thread is doing: open calls, modules, nodes that run, the depth of steps."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.calls: list[Call] = []
        self.modules: list[int] = [-1]
        self.nodes: list[int] = []
        self.step: list[Any] | None = None
        self.depth = 0


class Recorder(Trace):
    """Writes down calls, nodes and events.

    Args:
        limit: after so many events, it listens no longer.

    Attributes:
        events: time in nanoseconds, number of the thread, kind, and what the kind says.
        full: whether the limit was reached.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(None)
        self.events: list[tuple[Any, ...]] = []
        self.calls: list[Call] = []
        self.logs: dict[int, Log] = {}
        self.names = Names()
        self.graph = Graph(self.names)
        self.lines = Lines(_STOP)
        self.memory = Memory(self._note_memory)
        self.limit = limit
        self.full = False
        # What is told of an operator and a key set: the key and the kernel.
        self._keys: dict[tuple[Any, int], tuple[str, str]] = {}
        self._ops: dict[Any, str] = {}
        self._passes: dict[int, tuple[int, Log]] = {}
        self._pass_count = 0
        self._queues: dict[int, str] = {}

    def log(self) -> Log:
        """The calling thread's."""
        ident = _thread()
        log = self.logs.get(ident)
        if log is None:
            log = self.logs[ident] = Log(len(self.logs), threading.current_thread().name)
        return log

    def stop(self) -> None:
        """Hear no more, and let go of everything that belongs to the program."""
        self.full = True
        self.memory.close()
        self.names.forget()

    # Calls and their steps.

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        if self.full:
            return Trace.dispatch(self, kind, op, keyset, args)
        log = self.log()
        calls = log.calls
        if kind != "call" and calls:
            call = calls[-1]
            outer, depth = log.step, log.depth
            step = self._step(log, call, op, keyset)
            try:
                return Trace.dispatch(self, kind, op, keyset, args)
            finally:
                step[3] = _now()
                log.step, log.depth = outer, depth
        name = self._ops.get(op)
        if name is None:
            name = self._ops[op] = op.qualified_name.removeprefix("plugrad::")
        given: list[Any] = []
        frame: FrameType | None = None
        for value in args:
            if isinstance(value, plugrad.Tensor):
                given.append(value)
            elif isinstance(value, (list, tuple)):
                given.extend(each for each in value if isinstance(each, plugrad.Tensor))
        call = Call(len(self.calls), name, log, calls[-1].number if calls else -1)
        if calls:
            call.place = calls[-1].place
        else:
            frame = self._find_place(call)
        of = self.names.of
        call.inputs = [(of(each), sizes_of(each), each.dtype, each.device) for each in given]
        self._begin(log, call)
        outer, depth, log.depth = log.step, log.depth, 0
        step = self._step(log, call, op, keyset)
        try:
            result = Trace.dispatch(self, kind, op, keyset, args)
        finally:
            step[3] = call.end = _now()
            log.step, log.depth = outer, depth
            calls.pop()
            self.events.append((call.end, log.number, "end", call.number))
        if isinstance(result, plugrad.Tensor):
            self._note_results(log, call, [result], given, frame)
        elif isinstance(result, (list, tuple)):
            tensors = [each for each in result if isinstance(each, plugrad.Tensor)]
            self._note_results(log, call, tensors, given, frame)
        return result

    def _find_place(self, call: Call) -> FrameType | None:
        found = self.lines.find()
        if found is None:
            return None
        call.place = found[1], found[2]
        return found[0]

    def _begin(self, log: Log, call: Call) -> None:
        self.calls.append(call)
        log.calls.append(call)
        events = self.events
        if len(events) >= self.limit:
            self.full = True
        call.start = _now()
        events.append((call.start, log.number, "call", call.number))

    def _step(self, log: Log, call: Call, op: Any, keyset: int) -> list[Any]:
        about = self._keys.get((op, keyset))
        if about is None:
            about = op.resolve_key(keyset), _kernel_of(op, keyset)
            self._keys[op, keyset] = about
        start = _now()
        step = [about[0], about[1], start, 0, log.depth]
        self.events.append((start, log.number, "step", call.number, len(call.steps)))
        call.steps.append(step)
        log.step = step
        log.depth += 1
        return step

    def choose(self, operator: str, kernel: str) -> None:
        log = self.log()
        if log.step is not None and not self.full:
            log.step[1] = kernel
        super().choose(operator, kernel)

    def _note_results(
        self, log: Log, call: Call, results: list[Any], given: list[Any], frame: FrameType | None
    ) -> None:
        call.outputs = [("", sizes_of(each), each.dtype, each.device) for each in results]
        for each in results:
            history = history_of(each)
            if history is not None:
                node = self.graph.number(history[0])
                if node < 0:
                    node = self._add_node(log, history[0], call.number, frame)
                if call.node < 0:
                    call.node = node
        self.memory.add(results, given)

    def _note_memory(self, device: str, total: int) -> None:
        self.events.append((_now(), self.log().number, "memory", device, total))

    # Custom Functions.

    def enter_function(
        self, ctx: Any, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        if not self.full:
            log = self.log()
            outer = log.calls[-1] if log.calls else None
            call = Call(len(self.calls), name, log, -1 if outer is None else outer.number)
            self._find_place(call)
            given: list[Any] = [each for each in inputs if isinstance(each, plugrad.Tensor)]
            of = self.names.of
            call.inputs = [(of(each), sizes_of(each), each.dtype, each.device) for each in given]
            self._begin(log, call)
            if recorded:
                self.graph.claim(ctx, call.number, log.modules[-1])
        super().enter_function(ctx, name, inputs, recorded)

    def leave_function(self, ctx: Any) -> None:
        super().leave_function(ctx)
        log = self.log()
        if log.calls and not log.calls[-1].steps:
            call = log.calls.pop()
            call.end = _now()
            self.events.append((call.end, log.number, "end", call.number))

    # Modules and optimizers.

    def enter_module(self, module: Any) -> None:
        """A module's forward begins."""
        modules = self.log().modules
        modules.append(self.names.index(module, modules[-1]))

    def leave_module(self, module: Any) -> None:
        """It ends."""
        modules = self.log().modules
        if len(modules) > 1:
            modules.pop()

    def step_optimizer(self, optimizer: Any) -> None:
        """An optimizer's step begins."""
        if not self.full:
            name = type(optimizer).__name__
            self.events.append((_now(), self.log().number, "optimizer", name))

    # The graph.

    def _add_node(self, log: Log, node: Any, call: int, frame: FrameType | None) -> int:
        graph = self.graph
        module = log.modules[-1]
        if module < 0 and log.nodes:
            module = graph.nodes[log.nodes[-1]]["module"]
        time_, thread = _now(), log.number
        new = graph.add(node, call, module, frame)
        for number in new:
            self.events.append((time_, thread, "node", number))
            saved = graph.saved_bytes[number]
            if saved:
                self.events.append((time_, thread, "save", number, saved))
        return new[-1]

    def _number(self, node: Any) -> int:
        number = self.graph.number(node)
        return self._add_node(self.log(), node, -1, None) if number < 0 else number

    # Backward.

    def enter_pass(self, task: Any, root: Any, counts: Any) -> None:
        if not self.full:
            log = self.log()
            number = self._number(root)
            self._passes[id(task)] = self._pass_count, log
            roots = [number]
            if self.graph.nodes[number]["kind"] == "root":
                roots = [target for target, _ in self.graph.nodes[number]["edges"]]
            self.events.append((_now(), log.number, "backward", roots, self._pass_count))
            listed = [[self._number(node), count] for node, count in counts]
            self.events.append((_now(), log.number, "dependencies", listed))
            self._pass_count += 1
        super().enter_pass(task, root, counts)

    def leave_pass(self, task: Any) -> None:
        known = self._passes.pop(id(task), None)
        if known is not None and not self.full:
            self.events.append((_now(), self.log().number, "backward_end", known[0]))
        super().leave_pass(task)

    def arrive(
        self, task: Any, node: Any, input_nr: int, grad: Any, is_sum: bool, left: int
    ) -> None:
        if not self.full:
            number, thread, time_ = self._number(node), self.log().number, _now()
            events = self.events
            events.append((time_, thread, "buffer", number, input_nr, size(grad), is_sum))
            events.append((time_, thread, "count", number, left))
        super().arrive(task, node, input_nr, grad, is_sum, left)

    def queue_node(self, task: Any, node: Any, device: str) -> None:
        if not self.full:
            number, log = self._number(node), self.log()
            known = self._passes.get(id(task))
            queue = device or (log if known is None else known[1]).name
            self._queues[number] = queue
            self.events.append((_now(), log.number, "ready", number, queue))
        super().queue_node(task, node, device)

    def enter_node(self, node: Any) -> None:
        log = self.log()
        number = self._number(node)
        log.nodes.append(number)
        if not self.full:
            queue = self._queues.pop(number, log.name)
            self.events.append((_now(), log.number, "pop", number, queue))
        super().enter_node(node)

    def leave_node(self, node: Any) -> None:
        super().leave_node(node)
        nodes = self.log().nodes
        if nodes:
            nodes.pop()

    def run_node(self, node: Any, grads: Any) -> Any:
        if self.full:
            return Trace.run_node(self, node, grads)
        number, thread, events = self._number(node), self.log().number, self.events
        arrived = size(grads[0]) if grads else 0
        events.append((_now(), thread, "run", number))
        try:
            outputs = Trace.run_node(self, node, grads)
        finally:
            events.append((_now(), thread, "ran", number))
        if arrived and leaf_of(node) is not None:
            label = self.graph.nodes[number]["label"]
            events.append((_now(), thread, "grad", number, label, arrived))
        return outputs

    def run_hook(self, node: Any, kind: str, hook: Any) -> None:
        if node is not None and not self.full:
            name = getattr(hook, "__qualname__", type(hook).__qualname__)
            about = self._number(node), kind, name
            self.events.append((_now(), self.log().number, "hook", *about))
        super().run_hook(node, kind, hook)

    def release(self, node: Any) -> None:
        if not self.full:
            number = self._number(node)
            saved = self.graph.saved_bytes[number]
            if saved:
                self.graph.saved_bytes[number] = 0
                self.events.append((_now(), self.log().number, "free", number, saved))
        super().release(node)


def _kernel_of(op: Any, keyset: int) -> str:
    """Whose kernel serves a key, or what the function is called."""
    owner, _ = op.kernel_owner(keyset)
    if owner:
        return str(owner)
    kernel = op.lookup(keyset)
    return str(getattr(kernel, "__name__", type(kernel).__name__))


# A search for the program's line ends where the engine runs a node.
_STOP: Final[frozenset[CodeType]] = frozenset({Recorder.run_node.__code__})
