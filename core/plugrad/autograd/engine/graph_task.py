"""GraphTask: everything one backward pass knows about itself."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.dispatch.local_state import Snapshot
from plugrad.graph.node import Edge, Node
from plugrad.tensor.base import TensorBase


@final
class Capture:
    """A gradient that `autograd.grad` asked for: input `input_nr` of a node, as result `index`."""

    def __init__(self, input_nr: i64, index: i64) -> None:
        self.input_nr: i64 = input_nr
        self.index: i64 = index


@final
class ExecInfo:
    """Whether a node must run, and which of its inputs are results; only with `inputs=`."""

    def __init__(self) -> None:
        self.needed: bool = False
        self.captures: list[Capture] | None = None

    def should_execute(self) -> bool:
        return self.needed or self.captures is not None


@final
class GraphTask:
    """One backward pass.

    Attributes:
        outstanding_tasks: node tasks pushed and not yet run; the pass is over when none is left.
        dependencies, not_ready: counts and inputs of nodes that another pass holds; all others
            carry theirs themselves (`Node.pending`, `Node.buffer`), which spares two dict
            look-ups per edge.
        exec_info: which nodes matter, if only some do; None means all.
        captured: the gradients asked for.
    """

    def __init__(
        self, keep_graph: bool, create_graph: bool, reentrant_depth: i64, snapshot: Snapshot
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.reentrant_depth: i64 = reentrant_depth
        self.snapshot = snapshot
        self.outstanding_tasks: i64 = 0
        self.finished: bool = False
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.exec_info: dict[Node, ExecInfo] | None = None
        self.captured: list[TensorBase | None] = []
        self.final_callbacks: list[Any] = []

    def compute_dependencies(self, root: Node, min_topological_nr: i64) -> None:
        """Count, for every node that can be reached, the edges that lead to it."""
        shared = False
        stack: list[Node] = [root]
        while stack:
            node = stack.pop()
            if node.topological_nr < min_topological_nr:
                continue
            for edge in node.next_edges:
                function = edge.function
                if function is None:
                    continue
                owner = function.owner
                if owner is self:
                    function.pending += 1
                elif (owner is None or _is_finished(owner)) and not (
                    # The other pass may let go of a node while its edges are being counted here.
                    shared and function in self.dependencies
                ):
                    function.owner = self
                    function.pending = 1
                    function.buffer = None
                    stack.append(function)
                else:
                    shared = True
                    count = self.dependencies.get(function)
                    if count is None:
                        stack.append(function)
                        count = 0
                    self.dependencies[function] = count + 1

    def init_to_execute(
        self, root: Node, outputs: list[Edge], accumulate_grad: bool, min_topological_nr: i64
    ) -> None:
        """Mark the nodes on a path from the root to one of `outputs`: only they have to run."""
        exec_info: dict[Node, ExecInfo] = {}
        self.exec_info = exec_info
        for index, edge in enumerate(outputs):
            function = edge.function
            if function is None:
                continue
            info = exec_info.get(function)
            if info is None:
                info = ExecInfo()
                exec_info[function] = info
            if accumulate_grad:
                info.needed = True
            else:
                if info.captures is None:
                    info.captures = []
                info.captures.append(Capture(edge.input_nr, index))
        _mark_needed(exec_info, root, min_topological_nr)

    def close(self) -> None:
        """The pass is over, well or badly: let go of what it held.

        Nodes may still name it as their owner; what it refers to must not lead back to them.
        """
        self.finished = True
        self.exec_info = None
        self.captured = []
        self.dependencies = {}
        self.not_ready = {}


def _is_finished(owner: object) -> bool:
    return isinstance(owner, GraphTask) and owner.finished


@final
class _Frame:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.next_child: i64 = 0


def _mark_needed(exec_info: dict[Node, ExecInfo], root: Node, min_topological_nr: i64) -> None:
    """Depth first without recursion: a node is needed if a child has to be executed."""
    seen: set[Node] = {root}
    stack: list[_Frame] = [_Frame(root)]
    while stack:
        frame = stack[-1]
        node = frame.node
        edges = node.next_edges
        count: i64 = len(edges)
        pushed = False
        while frame.next_child < count:
            child = edges[frame.next_child].function
            frame.next_child += 1
            if child is None or child in seen or child.topological_nr < min_topological_nr:
                continue
            seen.add(child)
            stack.append(_Frame(child))
            pushed = True
            break
        if pushed:
            continue
        stack.pop()
        for edge in edges:
            function = edge.function
            if function is None:
                continue
            below = exec_info.get(function)
            if below is not None and below.should_execute():
                info = exec_info.get(node)
                if info is None:
                    info = ExecInfo()
                    exec_info[node] = info
                info.needed = True
                break
