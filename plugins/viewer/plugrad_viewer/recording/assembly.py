"""From a book's events to calls, nodes and events that refer to each other by number."""

from __future__ import annotations

from typing import Any, Final

from plugrad.plugins.watching import Book, key_names, read
from plugrad_viewer.recording.format import Call, Node, Step, Value
from plugrad_viewer.recording.graph import Kept, entry, name_of_dtype

Place = tuple[str, int]
# What `read` gives in place of a node if a call raised.
RAISED: Final = -2


class _Thread:
    """The open calls, steps, modules and nodes of a thread, innermost last."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls: list[int] = []
        self.steps: list[Step] = []
        # How many steps were open when each of the calls began.
        self.depths: list[int] = []
        self.modules: list[int] = [-1]
        self.nodes: list[int] = []
        # For each node: the inputs with gradients that are still to be captured.
        self.captures: list[tuple[int, ...]] = []


class Assembly:
    """Reads a book's events once.

    Args:
        start: the time that all others count from, in nanoseconds.

    Attributes:
        places: where in the program each call comes from, or None.
    """

    def __init__(self, book: Book, start: int) -> None:
        self.keysets: list[list[str]] = []
        self.calls: list[Call] = []
        self.nodes: list[Node] = []
        self.events: list[dict[str, Any]] = []
        self.places: list[Place | None] = []
        self.threads = book.threads
        self._threads = [_Thread(number) for number in range(len(self.threads))]
        self._start = start
        self._time = 0.0
        self._numbers: dict[int, int] = {}  # of nodes, in the order of their events
        self._saved: dict[int, int] = {}
        self._queues: dict[int, str] = {}
        self._owners: dict[int, str] = {}  # of passes: the name of the thread
        self._functions: dict[int, tuple[int, int]] = {}
        self._bytes: dict[str, int] = {}
        self._about: dict[tuple[Any, int], tuple[str, str]] = {}
        self._keysets: dict[int, int] = {}
        self._captures: dict[int, tuple[int, ...]] = {}
        self._arrived: dict[tuple[int, int], int] = {}  # bytes, by node and input
        for event in read(book):
            self._time = round((event[0] - start) / 1000, 2)
            getattr(self, f"_{event[2]}")(self._threads[event[1]], *event[3:])
        for thread in self._threads:  # of a recording that ended early
            while thread.calls:
                self._end(thread, [], -1)
        for node in self.nodes:  # by the numbers that nodes have here
            node["edges"] = [[self._numbers[target], nr] for target, nr in node["edges"]]

    def _add(self, thread: _Thread, kind: str, **about: Any) -> None:
        self.events.append({"t": self._time, "th": thread.number, "k": kind, **about})

    # Calls.

    def _open(
        self, thread: _Thread, op: str, place: Place | None, inputs: list[tuple[Any, ...]]
    ) -> int:
        number = len(self.calls)
        outer = thread.calls[-1] if thread.calls else -1
        self.places.append(self.places[outer] if outer >= 0 and thread.steps else place)
        self.calls.append(
            {
                "op": op,
                "source": None,
                "module": self._module(thread),
                "thread": thread.number,
                "start": self._time,
                "end": self._time,
                "parent": outer,
                "inputs": [_value(*each) for each in inputs],
                "outputs": [],
                "steps": [],
                "node": -1,
                "raised": False,
            }
        )
        thread.depths.append(len(thread.steps))
        thread.calls.append(number)
        self._add(thread, "call", c=number)
        return number

    def _module(self, thread: _Thread) -> int:
        """The running module, or else the module of the running node."""
        if thread.modules[-1] < 0 and thread.nodes:
            return self.nodes[thread.nodes[-1]]["module"]
        return thread.modules[-1]

    def _call(
        self, thread: _Thread, op: Any, keyset: int, place: Place | None, inputs: Any
    ) -> None:
        self._open(thread, op.qualified_name.removeprefix("plugrad::"), place, inputs)
        self._step(thread, op, keyset)

    def _function(
        self, thread: _Thread, function: int, name: str, place: Place | None, inputs: Any
    ) -> None:
        module = self._module(thread)
        self._functions[function] = self._open(thread, name, place, inputs), module

    def _step(self, thread: _Thread, op: Any, keyset: int) -> None:
        if not thread.calls:  # the recording began within its call
            return
        about = self._about.get((op, keyset))
        if about is None:
            about = self._about[op, keyset] = op.resolve_key(keyset), _kernel_of(op, keyset)
        call = thread.calls[-1]
        steps = self.calls[call]["steps"]
        step: Step = {
            "key": about[0],
            "keyset": self._keyset(keyset),
            "kernel": about[1],
            "start": self._time,
            "end": self._time,
            "depth": len(thread.steps) - thread.depths[-1],
        }
        self._add(thread, "step", c=call, s=len(steps))
        steps.append(step)
        thread.steps.append(step)

    def _keyset(self, keyset: int) -> int:
        number = self._keysets.get(keyset)
        if number is None:
            number = self._keysets[keyset] = len(self.keysets)
            self.keysets.append(list(key_names(keyset)))
        return number

    def _kernel(self, thread: _Thread, kernel: str) -> None:
        if thread.steps:
            thread.steps[-1]["kernel"] = kernel

    def _back(self, thread: _Thread) -> None:
        if thread.depths and len(thread.steps) > thread.depths[-1]:
            thread.steps.pop()["end"] = self._time

    def _end(self, thread: _Thread, outputs: list[tuple[Any, ...]], node: int) -> None:
        if not thread.calls:
            return
        number = thread.calls.pop()
        depth = thread.depths.pop()
        for step in thread.steps[depth:]:
            step["end"] = self._time
        del thread.steps[depth:]
        call = self.calls[number]
        call["end"] = self._time
        call["outputs"] = [_value(*each) for each in outputs]
        call["node"] = self._numbers.get(node, -1)
        call["raised"] = node == RAISED
        self._add(thread, "end", c=number)

    def _left(self, thread: _Thread, raised: bool) -> None:
        """A custom Function's forward ends, unless the recording began within it."""
        if thread.calls and not self.calls[thread.calls[-1]]["steps"]:
            self._end(thread, [], RAISED if raised else -1)

    # Modules, optimizers, memory.

    def _note(self, thread: _Thread, what: tuple[Any, ...]) -> None:
        getattr(self, f"_{what[0]}")(thread, *what[1:])

    def _enter(self, thread: _Thread, module: int) -> None:
        thread.modules.append(module)

    def _leave(self, thread: _Thread) -> None:
        if len(thread.modules) > 1:
            thread.modules.pop()

    def _optimizer(self, thread: _Thread, name: str) -> None:
        self._add(thread, "optimizer", name=name)

    def _memory(self, thread: _Thread, device: Any, nbytes: int) -> None:
        name = str(device)
        total = self._bytes[name] = self._bytes.get(name, 0) + nbytes
        self._add(thread, "memory", device=name, bytes=total)

    # The graph.

    def _node(
        self,
        thread: _Thread,
        node: int,
        name: str,
        maker: int,
        label: str | None,
        shape: tuple[int, ...],
        edges: list[list[int]],
        kept: list[Kept],
        sequence: int,
    ) -> None:
        number = self._numbers[node] = len(self.nodes)
        call = thread.calls[-1] if thread.calls else -1
        call, module = self._functions.get(maker, (call, self._module(thread)))
        self.nodes.append(entry(name, label, shape, edges, kept, sequence, call, module))
        self._add(thread, "node", n=number)
        saved = sum(each[3] for each in kept)
        if saved:
            self._saved[number] = saved
            self._add(thread, "save", n=number, bytes=saved)

    # Backward.

    def _backward(self, thread: _Thread, number: int, root: int) -> None:
        first = self._numbers[root]
        node = self.nodes[first]
        # Its edges still have the recorder's numbers.
        roots = [first]
        if node["kind"] == "root":
            roots = [self._numbers[target] for target, _ in node["edges"]]
        self._owners[number] = self.threads[thread.number]
        self._add(thread, "backward", roots=roots, b=number)

    def _dependencies(self, thread: _Thread, counts: list[list[int]]) -> None:
        listed = [[self._numbers[node], count] for node, count in counts]
        self._add(thread, "dependencies", counts=listed)

    def _backward_end(self, thread: _Thread, number: int) -> None:
        self._add(thread, "backward_end", b=number)

    def _buffer(
        self, thread: _Thread, node: int, input_nr: int, nbytes: int, is_sum: bool, left: int
    ) -> None:
        number = self._numbers[node]
        self._arrived[number, input_nr] = nbytes
        self._add(thread, "buffer", n=number, i=input_nr, bytes=nbytes, sum=is_sum)
        self._add(thread, "count", n=number, left=left)

    def _ready(
        self, thread: _Thread, node: int, pass_: int, device: str, captured: tuple[int, ...]
    ) -> None:
        self._captures[node] = captured
        queue = device or self._owners.get(pass_, self.threads[thread.number])
        self._queues[node] = queue
        self._add(thread, "ready", n=self._numbers[node], q=queue)

    def _pop(self, thread: _Thread, node: int) -> None:
        number = self._numbers[node]
        thread.nodes.append(number)
        thread.captures.append(self._captures.pop(node, ()))
        queue = self._queues.pop(node, self.threads[thread.number])
        self._add(thread, "pop", n=number, q=queue)

    def _done(self, thread: _Thread) -> None:
        if thread.nodes:
            self._capture(thread)
            thread.nodes.pop()
            thread.captures.pop()

    def _capture(self, thread: _Thread) -> None:
        """Keep the requested gradients of the current node, before it runs or instead of running
        it."""
        number = thread.nodes[-1]
        for input_nr in thread.captures[-1]:
            nbytes = self._arrived.get((number, input_nr), 0)
            self._add(thread, "capture", n=number, i=input_nr, bytes=nbytes)
        thread.captures[-1] = ()

    def _run(self, thread: _Thread, node: int) -> None:
        if thread.nodes:
            self._capture(thread)
        self._add(thread, "run", n=self._numbers[node])

    def _ran(self, thread: _Thread, node: int) -> None:
        self._add(thread, "ran", n=self._numbers[node])

    def _grad(self, thread: _Thread, node: int, nbytes: int) -> None:
        number = self._numbers[node]
        self._add(thread, "grad", n=number, label=self.nodes[number]["label"], bytes=nbytes)

    def _hook(self, thread: _Thread, node: int, what: str, name: str) -> None:
        self._add(thread, "hook", n=self._numbers[node], what=what, name=name)

    def _free(self, thread: _Thread, node: int) -> None:
        number = self._numbers[node]
        saved = self._saved.pop(number, 0)
        if saved:
            self._add(thread, "free", n=number, bytes=saved)


def _value(shape: tuple[int, ...], dtype: Any, device: Any, name: str = "") -> Value:
    return {
        "name": name,
        "shape": list(shape),
        "dtype": name_of_dtype(dtype),
        "device": str(device),
    }


def _kernel_of(op: Any, keyset: int) -> str:
    """The owner of the kernel for a key, or the function's name."""
    owner, _ = op.kernel_owner(keyset)
    if owner:
        return str(owner)
    kernel = op.lookup(keyset)
    return str(getattr(kernel, "__name__", type(kernel).__name__))
