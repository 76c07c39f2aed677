"""`plugrad.autograd.graph`: the public interface to nodes and edges."""

from __future__ import annotations

# Interpreted: its classes are for users to subclass and decorate with.
import abc
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from plugrad.autograd.engine.streams import warn_of_mismatch
from plugrad.autograd.saved_tensors import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from plugrad.autograd.variable.properties import output_nr
from plugrad.dispatch.local_state import current_state
from plugrad.graph import node as native
from plugrad.graph.history import gradient_edge, try_grad_accumulator
from plugrad.graph.removable_handle import RemovableHandle
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.direct import note_write

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """The class of every `grad_fn`; for `isinstance` and type annotations.

    >>> import plugrad
    >>> y = plugrad.ones(2, requires_grad=True).clone()
    >>> isinstance(y.grad_fn, plugrad.autograd.graph.Node)
    True
    >>> y.grad_fn.name()
    'CloneBackward0'
    """

    @abc.abstractmethod
    def name(self) -> str:
        """The node's name, such as ``MulBackward0``.

        >>> import plugrad
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> (x * 2).grad_fn.name()
        'MulBackward0'
        """

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each output, the next node and the number of its input.

        >>> import plugrad
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> (accumulate, number), = (x.exp()).grad_fn.next_functions
        >>> accumulate.name(), number, accumulate.variable is x
        ('AccumulateGrad', 0, True)
        """

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for data that users attach to the node.

        >>> import plugrad
        >>> node = plugrad.ones(2, requires_grad=True).exp().grad_fn
        >>> node.metadata["layer"] = "encoder"
        >>> node.metadata
        {'layer': 'encoder'}
        """

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> tuple[Any, ...]: ...

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Any) -> None: ...

    @abc.abstractmethod
    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after the node ran.

        >>> import plugrad
        >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: print(inputs[0], outputs[0]))
        >>> y.sum().backward()
        tensor([3., 3.]) tensor([1., 1.])
        >>> handle.remove()
        """

    @abc.abstractmethod
    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before the node runs.

        >>> import plugrad
        >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([30., 30.])
        """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        if cls is Node and issubclass(subclass, native.Node):
            return True
        return NotImplemented


class GradientEdge(NamedTuple):
    """The place where a gradient is computed: output `output_nr` of a node's operation.

    `grad` and `backward` accept it instead of the tensor, which may have been freed.
    `ownership_token` is always None here: a node keeps its part of the graph alive.

    >>> import plugrad
    >>> from plugrad.autograd.graph import GradientEdge, get_gradient_edge
    >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> edge = get_gradient_edge(y)
    >>> isinstance(edge, GradientEdge), edge.node is y.grad_fn, edge.output_nr
    (True, True, 0)
    >>> plugrad.autograd.grad(y.sum(), edge)
    (tensor([1., 1.]),)
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


@explains
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of `tensor` is computed.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import plugrad
    >>> x = plugrad.tensor(3., requires_grad=True)
    >>> edge = plugrad.autograd.graph.get_gradient_edge(x)
    >>> plugrad.autograd.grad(x * x, edge)
    (tensor(6.),)
    """
    given: Any = tensor
    if not given.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(_get_grad_fn_or_grad_acc(given), output_nr(given))


def _get_grad_fn_or_grad_acc(item: Any) -> Any:
    """The node that receives the gradient of a tensor or an edge."""
    if isinstance(item, GradientEdge):
        return item.node
    # None also for a view of a leaf that was made in no_grad mode, though it requires grad.
    node = gradient_edge(item).function
    if node is None:
        raise AssertionError("Expected gradient function to be set")
    return node


@explains
def increment_version(tensor: TensorBase | Iterable[TensorBase]) -> None:
    """Tell autograd that the elements of one or several tensors were written to.

    For writes that plugrad cannot detect, such as one into the array from `x.numpy()`. It has no
    effect on inference tensors, whose writes are not counted.

    Raises:
        RuntimeError: something is not a tensor.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> plugrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if isinstance(tensor, TensorBase):
        note_write(tensor)
        return
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for item in tensor:
        if not isinstance(item, TensorBase):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        note_write(item)


class _MultiHandle(RemovableHandle):
    """Removes the hooks that one multi-grad hook consists of."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handles

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handles = state


@explains
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` when gradients of several tensors are computed, once in every pass.

    Args:
        tensors: the tensors whose gradients `fn` gets.
        fn: with "all", gets a list of them when the pass has computed the last one, with None for
            tensors that the pass does not reach. With "any", gets the first one.
        mode: "all" or "any".

    Returns:
        A handle with `remove()`.

    Raises:
        ValueError: another mode.
        AssertionError: a tensor does not require grad; with "any" it is left out.
        RuntimeError: while a pass runs: `autograd.grad` takes the gradient of a leaf among them.

    >>> import plugrad
    >>> a, b = (plugrad.ones((), requires_grad=True) for _ in range(2))
    >>> c, d = a * b, a + b
    >>> def hook(grads):
    ...     print([grad is not None for grad in grads])
    >>> handle = plugrad.autograd.graph.register_multi_grad_hook((a, b, c, d), hook)
    >>> c.backward()
    [True, True, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        first = _FirstGradient(fn)
        return _MultiHandle(tuple(t.register_hook(first) for t in tensors if t.requires_grad))
    gathering = _Gathering(fn, [_Place(tensor) for tensor in tensors])
    hooks = [_OneOfAll(gathering, index) for index in range(len(gathering.places))]
    return _MultiHandle(
        tuple(tensor.register_hook(hook) for tensor, hook in zip(tensors, hooks, strict=True))
    )


class _Token:
    """Lives as long as a node's hooks, and so shows whether the node is alive."""


class _Place:
    """Where a tensor's gradient is computed. Holds neither the tensor nor the node: hooks are held
    by the nodes themselves, and a cycle would keep the graph."""

    def __init__(self, tensor: Any) -> None:
        node = _get_grad_fn_or_grad_acc(tensor)
        self.leaf: Any = None
        if tensor.grad_fn is None:
            # Its accumulator may be made later, by the next graph.
            self.leaf = weakref.ref(tensor)
            return
        hooks = node._ensure_hooks()
        if hooks.token is None:
            hooks.token = _Token()
        self.token = weakref.ref(hooks.token)
        self.node_id = id(node)

    def is_reached_by(self, task: Any) -> bool:
        """Whether a backward pass computes the gradient."""
        if self.leaf is None:
            return self.token() is not None and task.will_execute(self.node_id)
        leaf = self.leaf()
        node = None if leaf is None else try_grad_accumulator(leaf)
        return node is not None and task.will_execute(id(node))


class _Gathering:
    """Collects the gradients of several tensors in each pass, and calls `fn` with them."""

    def __init__(self, fn: Callable[..., Any], places: list[_Place]) -> None:
        self.fn = fn
        self.places = places

    def put(self, index: int, grad: Any) -> None:
        task = _running_pass()
        with _guard(task):
            notes = _notes_of(task)
            if self not in notes:
                awaited = sum(place.is_reached_by(task) for place in self.places)
                notes[self] = [awaited, [None] * len(self.places)]
            entry = notes[self]
            entry[0] -= 1
            entry[1][index] = grad
            complete = entry[0] == 0
            if complete:
                del notes[self]
        if complete:
            self.fn(entry[1])


class _OneOfAll:
    """The hook on one of the tensors."""

    def __init__(self, gathering: _Gathering, index: int) -> None:
        self.gathering = gathering
        self.index = index

    def __call__(self, grad: Any) -> None:
        self.gathering.put(self.index, grad)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn, once, if a leaf's gradient is accumulated on another stream than it was
    computed on; by default True. It happens if an accumulator outlives its forward.

    >>> import plugrad
    >>> plugrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    >>> plugrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    """
    warn_of_mismatch(bool(enabled))


class _FirstGradient:
    """The hook on several tensors that runs for the first gradient only."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, grad: Any) -> None:
        task = _running_pass()
        with _guard(task):
            notes = _notes_of(task)
            is_first = self not in notes
            notes[self] = True
        if is_first:
            self.fn(grad)


def _running_pass() -> Any:
    """The backward pass that runs on this thread."""
    task = current_state().graph_task
    if task is None:
        raise AssertionError("expected this hook to be called inside a backward call")
    return task


def _guard(task: Any) -> AbstractContextManager[Any]:
    """The pass's own lock if several threads work on it: a fork's child has no use for others."""
    return task.lock if task.shared else nullcontext()


def _notes_of(task: Any) -> dict[Any, Any]:
    """What hooks keep for the time of the pass; under its guard."""
    if task.notes is None:
        task.notes = {}
    notes: dict[Any, Any] = task.notes
    return notes
