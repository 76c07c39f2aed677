"""`plugrad.autograd.graph`: nodes and edges as users meet them."""

from __future__ import annotations

# Interpreted: its classes are for users to subclass and decorate with.
import abc
from collections.abc import Iterable
from typing import Any, NamedTuple

from plugrad.autograd.properties import output_nr
from plugrad.autograd.saved_tensors import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from plugrad.graph import node as native
from plugrad.graph.history import grad_accumulator, grad_fn_of
from plugrad.tensor.base import TensorBase, bump_version

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):
    """What every `grad_fn` is an instance of; for `isinstance` and type annotations.

    >>> import plugrad
    >>> y = plugrad.ones(2, requires_grad=True).clone()
    >>> isinstance(y.grad_fn, plugrad.autograd.graph.Node)
    True
    >>> y.grad_fn.name()
    'CloneBackward0'
    """

    @abc.abstractmethod
    def name(self) -> str:
        """What the node is called, such as ``MulBackward0``."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node that each output goes to, and which of its inputs it is."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever a user wants to keep with the node."""

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> tuple[Any, ...]: ...

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Any) -> None: ...

    @abc.abstractmethod
    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after the node ran."""

    @abc.abstractmethod
    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before the node runs."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        if cls is Node and issubclass(subclass, native.Node):
            return True
        return NotImplemented


class GradientEdge(NamedTuple):
    """Where a gradient is computed: output `output_nr` of what `node` is the gradient of.

    `grad` and `backward` take it in place of the tensor, which need not be alive any more.
    `ownership_token` is always None here: a node keeps its part of the graph alive.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge at which the gradient of `tensor` is computed.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import plugrad
    >>> x = plugrad.tensor(3., requires_grad=True)
    >>> edge = plugrad.autograd.graph.get_gradient_edge(x)
    >>> plugrad.autograd.grad(x * x, edge)
    (tensor(6.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(_get_grad_fn_or_grad_acc(tensor), output_nr(tensor))


def _get_grad_fn_or_grad_acc(item: Any) -> Any:
    """The node that a tensor's gradient, or that of an edge, flows into."""
    if isinstance(item, GradientEdge):
        return item.node
    node = grad_fn_of(item)
    if node is None and item.requires_grad:
        node = grad_accumulator(item)
    if node is None:
        raise AssertionError("Expected gradient function to be set")
    return node


def increment_version(tensor: TensorBase | Iterable[TensorBase]) -> None:
    """Tell autograd that the elements of a tensor, or of several, were written to.

    For writes that plugrad cannot see, such as one into the array that `x.numpy()` gave.

    Raises:
        RuntimeError: something is no tensor.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> plugrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if isinstance(tensor, TensorBase):
        bump_version(tensor)
        return
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for item in tensor:
        if not isinstance(item, TensorBase):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        bump_version(item)
