"""The naive engine: backward as in the textbook, the oracle for the real one.

One thread, no notes on nodes, no memory reused: count the edges that lead to each node, then run
the nodes that wait for nothing, latest first, each once on the sum of what arrived. With
`Tensor._execution_engine = NaiveEngine()` it replaces the real engine and also runs hooks.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad.autograd.engine.hook_results import check_result, checked_results
from plugrad.autograd.imperative_engine import ImperativeEngine
from plugrad.dispatch.local_state import Snapshot, current_state
from plugrad.graph.history import gradient_edge
from plugrad.tensor.calls.annotations import explains

Gradients = dict[tuple[Any, int], Any]  # by node and number of its input


class NaivePass:
    """One backward pass: its state, which code that runs within it can query, and its execution.

    Attributes:
        edges: the number of edges to each node that can be reached.
        needed: the nodes with a path to an input; all of them without inputs.
        captured: the node and input number of each gradient that is a result.
    """

    shared = False

    def __init__(self, roots: Sequence[Any], wanted: Sequence[Any], accumulate: bool) -> None:
        self.edges: dict[Any, int] = {}
        self.notes: dict[Any, Any] | None = None
        self.callbacks: list[Any] = []
        self.outer = current_state().graph_task
        self.can_checkpoint = not wanted and (self.outer is None or self.outer.can_checkpoint)
        self.captured = [] if accumulate else [(edge.function, edge.input_nr) for edge in wanted]
        order = self._reach([edge.function for edge in roots])
        targets = {edge.function for edge in wanted}
        self.needed = set(order) if not wanted else targets if accumulate else set()
        for node in reversed(order) if wanted else ():
            if any(f in targets or f in self.needed for f, _ in node.next_functions):
                self.needed.add(node)
        self.targets = targets

    def _reach(self, roots: list[Any]) -> list[Any]:
        """All nodes, each before those it points to."""
        seen = set(roots)
        stack = list(seen)
        while stack:
            for function, _ in stack.pop().next_functions:
                if function is not None:
                    self.edges[function] = self.edges.get(function, 0) + 1
                    if function not in seen:
                        seen.add(function)
                        stack.append(function)
        count, order = dict(self.edges), []
        stack = [node for node in seen if node not in count]
        while stack:
            order.append(stack.pop())
            for function, _ in order[-1].next_functions:
                if function is not None:
                    count[function] -= 1
                    if count[function] == 0:
                        stack.append(function)
        return order

    def wants(self, node: Any) -> bool:
        return node in self.needed or node in self.targets

    def will_execute(self, node_id: int) -> bool:
        for node in self.edges.keys() | self.needed:
            if id(node) == node_id and self.wants(node):
                if not node.next_functions and any(
                    node is captured for captured, _ in self.captured
                ):
                    raise RuntimeError("A leaf node was passed to _will_engine_execute_node")
                return True
        return False

    def run(
        self, roots: Sequence[Any], given: Sequence[Any], keep: bool, create: bool
    ) -> list[Any]:
        grads: Gradients = {}
        for edge, grad in zip(roots, given, strict=True):
            _add(grads, edge.function, edge.input_nr, grad)
        waiting = dict(self.edges)
        ready: list[tuple[int, int, Any]] = []
        for node in {edge.function for edge in roots if edge.function not in waiting}:
            heapq.heappush(ready, (-node._sequence_nr(), id(node), node))
        found: Gradients = {}
        while ready:
            node = heapq.heappop(ready)[2]
            current_state().grad_enabled = create
            arrived = [grads.pop((node, i), None) for i in range(node._num_inputs())]
            outputs = None
            if self.wants(node):
                outputs = self._run_node(node, arrived, found, keep)
            elif len(roots) == 1 and node is roots[0].function:
                # PyTorch runs the tensor hooks of a single root even if it is not needed.
                _run_tensor_hooks(node, arrived)
            for i, (function, nr) in enumerate(node.next_functions):
                if function is not None:
                    _add(grads, function, nr, outputs[i] if outputs is not None else None)
                    waiting[function] -= 1
                    if waiting[function] == 0:
                        heapq.heappush(ready, (-function._sequence_nr(), id(function), function))
        return [found.get(place) for place in self.captured]

    def _run_node(self, node: Any, grads: list[Any], found: Gradients, keep: bool) -> Any:
        needed = node in self.needed
        if not needed:
            _run_tensor_hooks(node, grads)
        for place in self.captured:
            if place[0] is node:
                found[place] = grads[place[1]]
        if not needed:
            return None
        _run_tensor_hooks(node, grads)
        for hook in _hooks_of(node, "pre"):
            if (result := hook(tuple(grads))) is not None:
                grads = checked_results(hook, grads, result)
        seen = tuple(grads)
        node._partial = bool(self.targets)
        outputs = node.apply(grads)
        node._partial = False
        for i, (function, nr) in enumerate(node.next_functions):
            if function is not None:
                outputs[i] = _fit(outputs[i], function._metadata_of_input(nr))
        for hook in _hooks_of(node, "post"):
            if (result := hook(tuple(outputs), seen)) is not None:
                outputs = checked_results(hook, outputs, result)
        if not keep:
            node._release_variables()
        return outputs


def _run_tensor_hooks(node: Any, grads: list[Any]) -> None:
    dicts = [] if node._node_hooks is None else list(node._node_hooks.tensor_pre)
    if hasattr(node, "variable") and node.variable._backward_hooks:
        dicts = [(node.variable._backward_hooks, 0)]
    for hooks, nr in dicts:
        for hook in list(hooks.values()):
            if (result := hook(grads[nr])) is not None:
                check_result(hook, grads[nr], result)
                grads[nr] = result
    for nr, reference in (
        [] if node._node_hooks is None else list(node._node_hooks.retains_grad.items())
    ):
        tensor, grad = reference(), grads[nr]
        if tensor is not None and grad is not None:
            tensor.grad = grad.clone() if tensor.grad is None else tensor.grad + grad


def _hooks_of(node: Any, kind: str) -> list[Any]:
    hooks = None if node._node_hooks is None else getattr(node._node_hooks, kind)
    return [] if hooks is None else list(hooks.values())


def _fit(grad: Any, metadata: Any) -> Any:
    """`grad` summed over broadcast dimensions and cast to the dtype that the receiving node
    expects."""
    if grad is None or metadata is None:
        return grad
    extra = grad.ndim - len(metadata.shape)
    if extra > 0:
        grad = grad.sum(tuple(range(extra)))
    ones = [i for i, n in enumerate(metadata.shape) if n == 1 and grad.shape[i] != 1]
    if ones:
        grad = grad.sum(tuple(ones), keepdim=True)
    if metadata.dtype.index < 0:  # any
        return grad
    if grad.dtype.is_complex and not metadata.dtype.is_complex:
        grad = plugrad.real(grad)
    return grad if grad.dtype is metadata.dtype else grad.to(metadata.dtype)


def _add(grads: Gradients, node: Any, nr: int, grad: Any) -> None:
    if grad is not None:
        grads[node, nr] = grads[node, nr] + grad if (node, nr) in grads else grad


class NaiveEngine(ImperativeEngine):
    """The naive engine with the interface of the real one.

    >>> import plugrad
    >>> from plugrad.testing import NaiveEngine
    >>> engine = plugrad.Tensor._execution_engine
    >>> plugrad.Tensor._execution_engine = NaiveEngine()
    >>> x = plugrad.tensor([1.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> plugrad.Tensor._execution_engine = engine
    >>> x.grad
    tensor([2., 6.])
    """

    def execute(
        self, roots: Any, grads: Any, keep: bool, create: bool, accumulate: bool, wanted: Any
    ) -> list[Any]:
        given = [
            _fit(g, e.function._metadata_of_input(e.input_nr))
            for g, e in zip(grads, roots, strict=True)
        ]
        task = NaivePass(roots, wanted, accumulate)
        state = current_state()
        before = Snapshot(state)
        state.graph_task = task
        try:
            found = task.run(roots, given, keep, create)
            before.restore(state)
            for callback in task.callbacks:
                callback()
            return found
        finally:
            before.restore(state)
            state.graph_task = task.outer

    def queue_callback(self, callback: Any) -> None:
        task = current_state().graph_task
        if task is None:
            super().queue_callback(callback)
        task.callbacks.append(callback)


@explains
def naive_grad(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    grad_outputs: Sequence[Any] | None = None,
    *,
    create_graph: bool = False,
) -> tuple[Any, ...]:
    """Gradients of the sum of `outputs` with respect to `inputs`; None where there is no path.

    What `plugrad.autograd.grad(..., retain_graph=True, allow_unused=True)` must return.

    >>> import plugrad
    >>> from plugrad.testing import naive_grad
    >>> x = plugrad.tensor([1.0, 3.0], requires_grad=True)
    >>> naive_grad([(x * x).sum()], [x])
    (tensor([2., 6.]),)
    """
    given = [None] * len(outputs) if grad_outputs is None else grad_outputs
    ones = [plugrad.ones_like(t) if g is None else g for t, g in zip(outputs, given, strict=True)]
    return NaiveEngine().run_backward(
        tuple(outputs), tuple(ones), True, create_graph, tuple(inputs), True, False
    )


@explains
def naive_backward(tensors: Sequence[Any], grad_tensors: Sequence[Any] | None = None) -> None:
    """Add gradients to the `.grad` of every leaf, as `plugrad.autograd.backward` must.

    >>> import plugrad
    >>> from plugrad.testing import naive_backward
    >>> x = plugrad.tensor([1.0, 3.0], requires_grad=True)
    >>> naive_backward([(x * x).sum()])
    >>> x.grad
    tensor([2., 6.])
    """
    roots = [gradient_edge(tensor) for tensor in tensors]
    nodes = NaivePass(roots, [], True).needed
    leaves = [node.variable for node in nodes if hasattr(node, "variable")]
    for leaf, grad in zip(leaves, naive_grad(tensors, leaves, grad_tensors), strict=True):
        if grad is not None:
            leaf.grad = grad if leaf.grad is None else leaf.grad + grad
