"""The replaceable engine: what `Tensor._execution_engine` must provide, and the default one."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from plugrad.autograd.engine.callbacks import queue_callback
from plugrad.autograd.engine.engine import ENGINE
from plugrad.autograd.engine.roots import Identity
from plugrad.autograd.graph import GradientEdge
from plugrad.autograd.variable.hooks import retain_grad
from plugrad.autograd.variable.properties import output_nr
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import current_state
from plugrad.graph.history import grad_fn_of, gradient_edge, try_grad_accumulator
from plugrad.graph.node import Edge, Node
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.arguments import type_name

CYCLE: Final = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


@mypyc_attr(allow_interpreted_subclasses=True)
class ImperativeEngine:
    """Runs backward passes for `backward` and `grad`.

    Any object with these methods may take its place: `Tensor._execution_engine = mine`.

    >>> import plugrad
    >>> class Counting(type(plugrad.Tensor._execution_engine)):
    ...     def run_backward(self, *args, **kwargs):
    ...         print("a pass")
    ...         return super().run_backward(*args, **kwargs)
    >>> default = plugrad.Tensor._execution_engine
    >>> plugrad.Tensor._execution_engine = Counting()
    >>> plugrad.ones((), requires_grad=True).backward()
    a pass
    >>> plugrad.Tensor._execution_engine = default
    """

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: Any,
        create_graph: Any,
        inputs: Any = None,
        allow_unreachable: Any = False,
        accumulate_grad: Any = False,
    ) -> tuple[Any, ...]:
        """One pass from `tensors`, tensors or gradient edges, with the gradients `grad_tensors`.

        Args:
            keep_graph: keep the graph's saved tensors.
            create_graph: record the gradients' computation.
            inputs: the tensors or gradient edges to differentiate with respect to; default all
                leaves.
            allow_unreachable: None, not an error, for an input that the pass does not reach.
            accumulate_grad: add to `.grad` of the inputs, instead of returning their gradients.

        Raises:
            RuntimeError: an argument is not a tuple, or an element of it has the wrong type or is
                not part of a graph.
        """
        return run_backward(
            tensors,
            grad_tensors,
            bool(keep_graph),
            bool(create_graph),
            inputs,
            bool(allow_unreachable),
            bool(accumulate_grad),
            self.execute,
        )

    def execute(
        self, roots: Any, grads: Any, keep: Any, create: Any, accumulate: Any, wanted: Any
    ) -> Any:
        """The pass itself, once its arguments are checked: what `Engine.execute` does."""
        return ENGINE.execute(roots, grads, keep, create, accumulate, wanted)

    def queue_callback(self, callback: Any) -> None:
        """Call `callback()` when the pass that is running is complete.

        Raises:
            RuntimeError: no pass is running on this thread.
        """
        queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether recomputing with a backward pass of its own reaches all that it should: not in
        one that takes gradients of chosen inputs only."""
        task: Any = current_state().graph_task  # another engine's may be of another class
        return task is None or bool(task.can_checkpoint)


DEFAULT_ENGINE: Final = ImperativeEngine()


def run_backward(
    tensors: Any,
    grad_tensors: Any,
    keep_graph: bool,
    create_graph: bool,
    inputs: Any = None,
    allow_unreachable: bool = False,
    accumulate_grad: bool = False,
    execute: Any = None,
) -> tuple[Any, ...]:
    """What `ImperativeEngine.run_backward` does; `execute` may take the place of `Engine.execute`
    in it."""
    roots, grads = _roots(tensors, grad_tensors)
    if inputs is None:
        inputs = ()
    elif not isinstance(inputs, tuple):
        raise RuntimeError("inputs to run_backward must be a tuple")
    if not accumulate_grad and not inputs:
        raise RuntimeError("grad requires non-empty inputs.")
    wanted = [_wanted_edge(item, accumulate_grad) for item in inputs]
    found: list[TensorBase | None] = []
    if roots:
        if accumulate_grad and create_graph:
            warn_at_caller(CYCLE)
        edges = tuple(roots)
        if execute is None:
            found = ENGINE.execute(edges, grads, keep_graph, create_graph, accumulate_grad, wanted)
        else:
            found = execute(edges, grads, keep_graph, create_graph, accumulate_grad, wanted)
    elif not accumulate_grad:
        found = [None] * len(wanted)
    if not accumulate_grad and not allow_unreachable:
        for index, result in enumerate(found):
            if result is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {index} appears to not have been used in "
                    "the graph. Set allow_unused=True if this is the desired behavior."
                )
    return tuple(found)


def _roots(tensors: Any, grad_tensors: Any) -> tuple[list[Edge], list[TensorBase | None]]:
    if not isinstance(tensors, tuple):
        raise RuntimeError(
            f"tensors argument is expected to be a tuple, but got {type_name(tensors)}"
        )
    if not isinstance(grad_tensors, tuple):
        raise RuntimeError(
            f"grad_tensors argument is expected to be a tuple, but got {type_name(grad_tensors)}"
        )
    if len(tensors) != len(grad_tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grad_tensors)} gradients")
    roots: list[Edge] = []
    grads: list[TensorBase | None] = []
    for index, item in enumerate(tensors):
        if isinstance(item, TensorBase):
            edge = gradient_edge(item)
            if edge.function is None:
                raise RuntimeError(
                    f"element {index} of tensors does not require grad and does not have a grad_fn"
                )
        elif isinstance(item, GradientEdge):
            edge = _checked_edge(item)
        else:
            raise RuntimeError(
                f"element {index} of tensors tuple is neither a Tensor nor a GradientEdge"
            )
        roots.append(edge)
        grad = grad_tensors[index]
        if isinstance(grad, TensorBase):
            grads.append(grad)
        elif grad is None:
            raise RuntimeError(
                f"element {index} of gradients tuple is None, but the corresponding Tensor "
                "requires grad"
            )
        else:
            raise RuntimeError(f"element {index} of gradients tuple is not a Tensor or None")
    return roots, grads


def _wanted_edge(item: Any, accumulate_grad: bool) -> Edge:
    """Where the gradient of one of `inputs` arrives; a node of its own if the graph has none."""
    if isinstance(item, TensorBase):
        # After a write to its base, a view's grad_fn is regenerated before it retains its gradient.
        node = grad_fn_of(item) if needs_grad(item) else None
        if accumulate_grad:
            retain_grad(item)
        if not needs_grad(item):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        if node is not None:
            return Edge(node, output_nr(item))
        node = try_grad_accumulator(item)
        return Edge(Identity() if node is None else node, 0)
    if isinstance(item, GradientEdge):
        return _checked_edge(item)
    raise RuntimeError(
        f"all inputs have to be Tensors or GradientEdges, but got {type(item).__name__}"
    )


def _checked_edge(item: Any) -> Edge:
    node = item.node
    if not isinstance(node, Node):
        raise TypeError(
            f"GradientEdge's first object must be a Node, but got {type(node).__name__}"
        )
    number: int = item.output_nr
    if not 0 <= number < node._num_inputs():
        raise IndexError(
            f"{node.name()} has no output {number}, but only {int(node._num_inputs())}"
        )
    return Edge(node, number)
