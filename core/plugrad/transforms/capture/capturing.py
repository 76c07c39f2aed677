"""`plugrad.capture`: run a function once and keep what it called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.autograd import set_multithreading_enabled
from plugrad.dispatch.autocast import autocast_in_force
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.scope import Undone
from plugrad.plugins.tracing import listening
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.transforms.capture.errors import CaptureError
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.guards import Guards
from plugrad.transforms.capture.naming import PLAIN, RESERVED
from plugrad.transforms.capture.node import Ref
from plugrad.transforms.capture.recorder import Recorder
from plugrad.transforms.capture.trees import containers, flatten


def capture(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Graph:
    """The operators that a function calls, with these arguments, as a graph.

    The function runs once. Afterwards tensors, their gradients and random number generators are
    restored; other changes, such as to lists, remain.

    Operators are recorded below autograd: this includes operators of a backward pass within the
    function. Composite operators are recorded as their parts.

    Args:
        fn: any function; tensors that are not arguments, such as a module's parameters, are
            constants of the graph, by reference.
        args, kwargs: examples. Tensors in them, at any depth of dicts, lists and tuples, are
            inputs; the graph holds for other tensors of the same shapes, dtypes and devices, and
            for equal values of everything else.

    Raises:
        CaptureError: the function does what a graph cannot contain, such as reading values.

    >>> import plugrad
    >>> graph = plugrad.capture(lambda x, y: (x * y).sum(), plugrad.ones(2), plugrad.ones(2))
    >>> print(graph)
    def captured(x0, x1):
        mul = ops.plugrad.mul.Tensor(x0, x1)  # float32[2]
        sum = ops.plugrad.sum.default(mul)  # float32[]
        return sum
    >>> graph(plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not callable(fn):
        raise TypeError(f"capture(): expected a function, got {type(fn).__name__}")
    return capture_with(Recorder, fn, args, kwargs)


def capture_with(
    made: Callable[[list[TensorBase], dict[str, Any]], Recorder],
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Graph:
    """`capture` with a recorder that chooses itself which operators become nodes.

    Args:
        made: gives the recorder, of the tensors among the arguments and the keyword arguments.
    """
    leaves, tree = flatten((args, kwargs), sort=True)
    positions = [n for n, leaf in enumerate(leaves) if isinstance(leaf, TensorBase)]
    recorder = made([leaves[position] for position in positions], kwargs)
    with Undone(recorder.restore), set_multithreading_enabled(False), listening(recorder):
        result = fn(*args, **kwargs)
        return finished_graph(fn, recorder, leaves, tree, positions, result)


def finished_graph(
    fn: Callable[..., Any],
    recorder: Recorder,
    leaves: list[Any],
    tree: Any,
    positions: list[int],
    result: Any,
) -> Graph:
    """The graph of a run that a recorder has observed.

    Args:
        leaves, tree: the arguments, `(args, kwargs)`, taken apart; `positions`: which of the leaves
            are tensors.
        result: what the function returned.
    """
    found, output_tree = flatten(result)
    if recorder.functions and any(isinstance(t, TensorBase) and needs_grad(t) for t in found):
        raise CaptureError(
            f"capture(): {recorder.functions[0]} has a backward of its own, which a graph of "
            "operators does not keep, and a result of the function requires grad: take the "
            "gradient within the function, or capture under no_grad()"
        )
    outputs: list[Any] = []
    for leaf in found:
        if isinstance(leaf, TensorBase):
            outputs.append(Ref(recorder.name_of(leaf)))
        else:
            outputs.append(leaf if type(leaf) in PLAIN else recorder.constant_object(leaf))
    for kind in containers(output_tree):
        recorder.constant_object(kind)
    gradients = recorder.gradients()
    constants = recorder.held()
    recorder.check_reads()
    recorder.check_arrays()
    kept = {output.name for output in outputs if isinstance(output, Ref)}
    kept.update(name for name in gradients.values() if name is not None)
    nodes = recorder.used_nodes(kept)
    inputs = recorder.finished_inputs(positions)
    has_grad = dict(recorder.grads_asked)
    has_grad.update({c.grad_of: True for c in constants.values() if c.grad_of})
    guards = Guards(
        tree=tree,
        leaves=tuple([None if isinstance(leaf, TensorBase) else leaf for leaf in leaves]),
        inputs=inputs,
        mode=recorder.mode,
        autocast=dict(autocast_in_force(current_state())),
        requires_grad=recorder.passes or recorder.met_functions,
        has_grad=has_grad,
    )
    name = getattr(fn, "__name__", "captured")
    if name in RESERVED:
        name += "_"
    return Graph(
        function=fn,
        name=name if name.isidentifier() else "captured",
        guards=guards,
        held=constants,
        nodes=tuple(nodes),
        output_tree=output_tree,
        outputs=tuple(outputs),
        gradients=gradients,
        makes_leaves=recorder.makes_leaves(),
    ).without_unused_constants()
