"""The naive engine: backward as the textbook has it, the oracle for the real one.

One thread, no priorities, no pruning, no hooks, nothing released: sort the graph so that every
node comes after all that point to it, then run each node once on the sum of what arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad.graph.history import gradient_edge

Gradients = dict[tuple[int, int], Any]  # by id of a node and number of its input


def _sorted_nodes(roots: list[Any]) -> list[Any]:
    """All nodes reachable from `roots`, each before those it points to."""
    finished: list[Any] = []
    seen: set[int] = set()
    for root in roots:
        stack = [] if id(root) in seen else [(root, iter(root.next_functions))]
        seen.add(id(root))
        while stack:
            node, edges = stack[-1]
            for function, _ in edges:
                if function is not None and id(function) not in seen:
                    seen.add(id(function))
                    stack.append((function, iter(function.next_functions)))
                    break
            else:
                finished.append(node)
                stack.pop()
    return finished[::-1]


def _fit(grad: Any, metadata: Any) -> Any:
    """`grad` summed over broadcast dimensions and cast to what the receiving node expects."""
    if grad is None or metadata is None:
        return grad
    extra = grad.ndim - len(metadata.shape)
    if extra:
        grad = grad.sum(tuple(range(extra)))
    ones = [i for i, n in enumerate(metadata.shape) if n == 1 and grad.shape[i] != 1]
    if ones:
        grad = grad.sum(tuple(ones), keepdim=True)
    if grad.dtype.is_complex and not metadata.dtype.is_complex:
        grad = plugrad.real(grad)
    return grad if grad.dtype is metadata.dtype else grad.to(metadata.dtype)


def _add(grads: Gradients, key: tuple[int, int], grad: Any) -> None:
    if grad is not None:
        grads[key] = grads[key] + grad if key in grads else grad


def _run(outputs: Sequence[Any], grad_outputs: Sequence[Any] | None) -> tuple[list[Any], Gradients]:
    """The nodes in the order they ran, and the gradient that arrived at every input of each."""
    grads: Gradients = {}
    roots = []
    for i, output in enumerate(outputs):
        given = None if grad_outputs is None else grad_outputs[i]
        edge = gradient_edge(output)
        roots.append(edge.function)
        grad = plugrad.ones_like(output) if given is None else given
        _add(grads, (id(edge.function), edge.input_nr), grad)
    nodes = _sorted_nodes(roots)
    for node in nodes:
        arrived = [grads.get((id(node), i)) for i in range(node.num_inputs())]
        if not node.next_functions or all(grad is None for grad in arrived):
            continue
        for (function, nr), grad in zip(node.next_functions, node.apply(arrived), strict=True):
            if function is not None:
                _add(grads, (id(function), nr), _fit(grad, function.input_metadata(nr)))
    return nodes, grads


def naive_grad(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    grad_outputs: Sequence[Any] | None = None,
    *,
    create_graph: bool = False,
) -> tuple[Any, ...]:
    """Gradients of the sum of `outputs` with respect to `inputs`; None where there is no path.

    What `plugrad.autograd.grad(..., retain_graph=True, allow_unused=True)` must return.
    """
    edges = [gradient_edge(tensor) for tensor in inputs]
    with plugrad.set_grad_enabled(create_graph):
        _, grads = _run(outputs, grad_outputs)
    return tuple(grads.get((id(edge.function), edge.input_nr)) for edge in edges)


def naive_backward(tensors: Sequence[Any], grad_tensors: Sequence[Any] | None = None) -> None:
    """Add gradients to the `.grad` of every leaf, as `plugrad.autograd.backward` must."""
    with plugrad.no_grad():
        nodes, grads = _run(tensors, grad_tensors)
        for node in nodes:
            grad = grads.get((id(node), 0))
            if grad is not None and hasattr(node, "variable"):
                leaf = node.variable
                leaf.grad = grad if leaf.grad is None else leaf.grad + grad
