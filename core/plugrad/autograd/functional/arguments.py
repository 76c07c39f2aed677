"""Shared parts of the functions of `autograd.functional`: their arguments, checks and results."""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
from collections.abc import Callable
from typing import Any

from plugrad._generated import functions as F
from plugrad.autograd.run_backward import grad
from plugrad.tensor.base import TensorBase

Tensors = tuple[Any, ...]

INDEPENDENT = (
    "The output of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode."
)
CONSTANT = (
    "The {} of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode when create_graph=True."
)
LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on the "
    "inputs (this would be violated by a linear function for example)."
)


def as_tuple(value: Any, what: str, caller: str) -> tuple[bool, Tensors]:
    """Whether it is a tuple, and its tensors."""
    nested = isinstance(value, tuple)
    items: Tensors = value if nested else (value,)
    for index, item in enumerate(items):
        if not isinstance(item, TensorBase):
            which = f"value at index {index}" if nested else f"given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but "
                f"the {which} has type {type(item)}."
            )
    return nested, items


def fresh(tensors: Tensors, create_graph: bool, requires_grad: bool) -> Tensors:
    """New tensors that share memory with these; part of their graph if requested."""
    return tuple(
        tensor.view_as(tensor)
        if create_graph and tensor.requires_grad
        else tensor.detach().requires_grad_(requires_grad)
        for tensor in tensors
    )


def points_of(inputs: Any, caller: str, create_graph: bool) -> tuple[bool, Tensors]:
    nested, tensors = as_tuple(inputs, "inputs", caller)
    return nested, fresh(tensors, create_graph, True)


def vectors_of(v: Any, like: Tensors, nested: bool, caller: str, create_graph: bool) -> Tensors:
    """`v`, which must look like the tensors `like`."""
    vectors = fresh(as_tuple(v, "v", caller)[1], create_graph, False)
    if len(vectors) != len(like):
        if nested:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (vector, other) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != other.shape:
            entry = f"Entry {index} in " if nested else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {other.shape} but got {vector.shape}."
            )
    return vectors


def vectors_like_points(
    v: Any, points: Tensors, nested: bool, caller: str, create_graph: bool
) -> Tensors | None:
    if v is not None:
        return vectors_of(v, points, nested, caller, create_graph)
    if len(points) != 1 or points[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single "
            "Tensor with a single element."
        )
    return None


def evaluate(
    func: Callable[..., Any], points: Tensors, caller: str, strict: bool
) -> tuple[bool, Tensors]:
    nested, outputs = as_tuple(func(*points), "outputs of the user-provided function", caller)
    check_requires_grad(
        outputs,
        strict,
        "Output {} of the user-provided function does not require gradients. The outputs must be "
        "computed in a differentiable manner from the input when running in strict mode.",
    )
    return nested, outputs


def evaluate_scalar(
    func: Callable[..., Any], points: Tensors, caller: str, strict: bool
) -> Tensors:
    nested, outputs = evaluate(func, points, caller, strict)
    if nested:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {caller} should contain a single element"
        )
    return outputs


def check_requires_grad(tensors: Tensors, strict: bool, message: str) -> None:
    """In strict mode, raise `message` about the first tensor that does not require grad."""
    if not strict:
        return
    for index, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(INDEPENDENT.format(index))
        if not tensor.requires_grad:
            raise RuntimeError(message.format(index))


def gradients(
    outputs: Tensors,
    inputs: Tensors,
    vectors: Tensors | None,
    create_graph: bool,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> Tensors:
    """`autograd.grad` that passes over outputs without gradient; None for unused inputs."""
    wanted = [
        index for index, output in enumerate(outputs) if output is not None and output.requires_grad
    ]
    if not wanted:
        return (None,) * len(inputs)
    found: Tensors = grad(
        tuple(outputs[index] for index in wanted),
        inputs,
        None if vectors is None else tuple(vectors[index] for index in wanted),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
        is_grads_batched=batched,
    )
    return found


def linear_gradients(outputs: Tensors, points: Tensors) -> tuple[Tensors, Tensors]:
    """Weights of the outputs, and the gradients that they lead to, which are linear in them.

    The weights are zero: only the derivative with respect to them is of interest. Outputs that
    are gradients may be missing; they have the shapes of the points.
    """
    weights = tuple(
        F.zeros_like(points[index] if output is None else output, requires_grad=True)
        for index, output in enumerate(outputs)
    )
    return weights, gradients(outputs, points, weights, True)


def without_gaps(
    grads: Tensors, like: Tensors, strict: bool, create_graph: bool, message: str, name: str
) -> Tensors:
    """Zeros in place of None; in strict mode, an error."""
    found: list[Any] = []
    for index, (gradient, tensor) in enumerate(zip(grads, like, strict=True)):
        if gradient is None:
            if strict:
                raise RuntimeError(message.format(index))
            gradient = F.zeros_like(tensor)
        elif strict and create_graph and not gradient.requires_grad:
            raise RuntimeError(CONSTANT.format(name, index))
        found.append(gradient)
    return tuple(found)


def as_result(tensors: Tensors, nested: bool, create_graph: bool) -> Any:
    """The results for users, one tensor or several; outside the graph unless they requested it."""
    found = tensors if create_graph else tuple(tensor.detach() for tensor in tensors)
    return found if nested else found[0]
