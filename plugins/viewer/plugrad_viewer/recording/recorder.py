"""Recorder: the trace that writes down what happens, as it happens.

Here runs what slows a recorded program down. Each event is one tuple, with what may be gone later;
`assembly.py` finds out at the end what belongs to what.
"""

from __future__ import annotations

import itertools
import threading
import time
from types import CodeType, FrameType
from typing import Any, Final

import plugrad
from plugrad.plugins.watching import Trace, history_of, leaf_of, note_of, sizes_of
from plugrad_viewer.recording.graph import Graph, size
from plugrad_viewer.recording.memory import Memory
from plugrad_viewer.recording.names import Names
from plugrad_viewer.recording.sources import Lines

_now: Final = time.perf_counter_ns
_thread: Final = threading.get_ident
_Tensor: Final = plugrad.Tensor


class Recorder(Trace):
    """Writes down what it hears of.

    Args:
        limit: after so many events, it listens no longer.

    Attributes:
        events: time in nanoseconds, the thread's identity, a kind, and what the kind says:
            "call" op, key set, place, inputs; "function" number, name, place, inputs; "left" it;
            "step" op, key set; "kernel" the variant that computes the innermost step; "back" a
            step ends; "end" of a call: outputs, the number of its node or -1, and
            when it ended, since what is done for the recording comes between;
            "enter" module; "leave" one ends; "optimizer" name;
            "node" `Seen`; "backward" pass, root; "dependencies" counts; "backward_end" pass;
            "ready" node, pass, device; "pop" node; "done" with it; "run"; "ran"; "grad" bytes;
            "buffer" node, input, bytes, whether it is a sum, how many are left;
            "hook" node, kind, name; "free" node; "memory" device, bytes that came or went.
        threads: the names of the threads, by identity.
        full: whether it listens no longer.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(None)
        self.events: list[tuple[Any, ...]] = []
        self.threads: dict[int, str] = {}
        self.names = Names()
        self.full = False
        self._put = self.events.append
        self._limit = limit
        self._lines = Lines(_STOP)
        self._memory = Memory(self._note_memory)
        self._graph = Graph(self.names)
        self._key = self._graph.key
        self._modules: dict[int, list[int]] = {}
        self._passes: dict[int, int] = {}
        self._pass_numbers = itertools.count()
        self._function_numbers = itertools.count()
        self.know_thread()

    def know_thread(self) -> int:
        """The calling thread's identity, whose name is noted."""
        ident = _thread()
        if ident not in self.threads:
            self.threads[ident] = threading.current_thread().name
        return ident

    def stop(self) -> None:
        """Hear no more, and let go of everything that belongs to the program."""
        self.full = True
        self._memory.close()
        self.names.forget()

    # Calls and their steps.

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        if self.full:
            return Trace.dispatch(self, kind, op, keyset, args)
        put = self._put
        thread = _thread()
        if kind != "call":
            put((_now(), thread, "step", op, keyset))
            try:
                return Trace.dispatch(self, kind, op, keyset, args)
            finally:
                put((_now(), thread, "back"))
        if thread not in self.threads:
            self.know_thread()
        given: list[Any] = []
        for value in args:
            if isinstance(value, _Tensor):
                given.append(value)
            elif isinstance(value, (list, tuple)):
                given.extend([each for each in value if isinstance(each, _Tensor)])
        frame, place = self._lines.find()
        inputs = self._about(given)
        events = self.events
        if len(events) >= self._limit:
            self.full = True
        put((_now(), thread, "call", op, keyset, place, inputs))
        outputs: list[Any] = []
        node = -1
        ended = 0
        try:
            result = Trace.dispatch(self, kind, op, keyset, args)
            ended = _now()
            if isinstance(result, _Tensor):
                outputs = [result]
            elif isinstance(result, (list, tuple)):
                outputs = [each for each in result if isinstance(each, _Tensor)]
            if outputs:
                node = self._node_of(outputs, frame)
                self._memory.add(outputs, given)
        finally:
            about = [(sizes_of(each), each.dtype, each.device) for each in outputs]
            now = _now()
            put((now, thread, "end", about, node, ended or now))
        return result

    def _about(self, given: list[Any]) -> list[tuple[Any, ...]]:
        named, of = self.names.tensors, self.names.of
        return [
            (sizes_of(each), each.dtype, each.device, of(each) if id(each) in named else "")
            for each in given
        ]

    def _node_of(self, outputs: list[Any], frame: FrameType | None) -> int:
        """The number of the first of the outputs' nodes; all of them are noted."""
        first = -1
        for each in outputs:
            history = history_of(each)
            if history is not None:
                number = note_of(history[0], self._key)
                if number is None:
                    number = self._add_node(history[0], frame)
                if first < 0:
                    first = number
        return first

    def choose(self, operator: str, kernel: str) -> None:
        if not self.full:
            self._put((_now(), _thread(), "kernel", kernel))
        Trace.choose(self, operator, kernel)

    def _note_memory(self, device: Any, nbytes: int) -> None:
        self._put((_now(), self.know_thread(), "memory", device, nbytes))

    # Custom Functions.

    def enter_function(
        self, ctx: Any, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        if not self.full:
            number = next(self._function_numbers)
            if recorded:
                self._graph.claim(ctx, number)
            about = self._about([each for each in inputs if isinstance(each, _Tensor)])
            _, place = self._lines.find()
            self._put((_now(), self.know_thread(), "function", number, name, place, about))
        Trace.enter_function(self, ctx, name, inputs, recorded)

    def leave_function(self, ctx: Any) -> None:
        Trace.leave_function(self, ctx)
        self._put((_now(), _thread(), "left"))

    # Modules and optimizers.

    def enter_module(self, module: Any) -> None:
        """A module's forward begins."""
        thread = self.know_thread()
        modules = self._modules.setdefault(thread, [-1])
        modules.append(self.names.index(module, modules[-1]))
        self._put((_now(), thread, "enter", modules[-1]))

    def leave_module(self, module: Any) -> None:
        """It ends."""
        modules = self._modules.get(_thread())
        if modules is not None and len(modules) > 1:
            modules.pop()
            self._put((_now(), _thread(), "leave"))

    def step_optimizer(self, optimizer: Any) -> None:
        """An optimizer's step begins."""
        if not self.full:
            self._put((_now(), self.know_thread(), "optimizer", type(optimizer).__name__))

    # The graph.

    def _add_node(self, node: Any, frame: FrameType | None) -> int:
        thread, now = _thread(), _now()
        new = self._graph.add(node, frame)
        for seen in new:
            self._put((now, thread, "node", seen))
        return new[-1].number

    def _number(self, node: Any) -> int:
        number: int | None = note_of(node, self._key)
        return self._add_node(node, None) if number is None else number

    # Backward.

    def enter_pass(self, task: Any, root: Any, counts: Any) -> None:
        if not self.full:
            thread = self.know_thread()
            number = self._passes[id(task)] = next(self._pass_numbers)
            first = self._number(root)
            self._put((_now(), thread, "backward", number, first))
            listed = [[self._number(node), count] for node, count in counts]
            self._put((_now(), thread, "dependencies", listed))
        Trace.enter_pass(self, task, root, counts)

    def leave_pass(self, task: Any) -> None:
        number = self._passes.pop(id(task), -1)
        if number >= 0 and not self.full:
            self._put((_now(), _thread(), "backward_end", number))
        Trace.leave_pass(self, task)

    def arrive(
        self, task: Any, node: Any, input_nr: int, grad: Any, is_sum: bool, left: int
    ) -> None:
        if not self.full:
            number = self._number(node)
            self._put((_now(), _thread(), "buffer", number, input_nr, size(grad), is_sum, left))
        Trace.arrive(self, task, node, input_nr, grad, is_sum, left)

    def queue_node(self, task: Any, node: Any, device: str) -> None:
        if not self.full:
            number = self._number(node)
            about = self._passes.get(id(task), -1)
            self._put((_now(), self.know_thread(), "ready", number, about, device))
        Trace.queue_node(self, task, node, device)

    def enter_node(self, node: Any) -> None:
        if not self.full:
            self._put((_now(), self.know_thread(), "pop", self._number(node)))
        Trace.enter_node(self, node)

    def leave_node(self, node: Any) -> None:
        Trace.leave_node(self, node)
        if not self.full:
            self._put((_now(), _thread(), "done"))

    def run_node(self, node: Any, grads: Any) -> Any:
        if self.full:
            return Trace.run_node(self, node, grads)
        number, thread, put = self._number(node), _thread(), self._put
        arrived = grads and leaf_of(node) is not None and grads[0] is not None
        nbytes = size(grads[0]) if arrived else 0
        put((_now(), thread, "run", number))
        try:
            outputs = Trace.run_node(self, node, grads)
        finally:
            put((_now(), thread, "ran", number))
        if arrived:
            put((_now(), thread, "grad", number, nbytes))
        return outputs

    def run_hook(self, node: Any, kind: str, hook: Any) -> None:
        if node is not None and not self.full:
            name = getattr(hook, "__qualname__", type(hook).__qualname__)
            self._put((_now(), _thread(), "hook", self._number(node), kind, name))
        Trace.run_hook(self, node, kind, hook)

    def release(self, node: Any) -> None:
        if not self.full:
            self._put((_now(), _thread(), "free", self._number(node)))
        Trace.release(self, node)


# A search for the program's line ends where the engine runs a node.
_STOP: Final[frozenset[CodeType]] = frozenset({Recorder.run_node.__code__})
