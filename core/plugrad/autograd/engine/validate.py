"""Checks that gradients match their tensors: shape, dtype and device."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64

from plugrad._generated import functions as F
from plugrad.dtype import COMPLEX
from plugrad.graph.node import ANY_DTYPE, InputMetadata, Node, name_of
from plugrad.tensor.base import TensorBase, sizes_of


def validate_outputs(grads: list[TensorBase | None], node: Node) -> None:
    """Check what a node returned against where it goes, in place.

    A gradient that was broadcast in the forward pass is summed down; one of another dtype is cast;
    one without dimensions is moved.

    Raises:
        RuntimeError: wrong number of gradients, a shape that does not fit, or another device.
    """
    count: i64 = node._edge_count
    if len(grads) != count:
        raise RuntimeError(
            f"Function {name_of(node)} returned an incorrect number of gradients (expected "
            f"{count}, got {len(grads)})"
        )
    index: i64 = 0
    while index < count:
        function = node._edge_node(index)
        grad = grads[index]
        if function is not None and grad is not None:
            metadata = function._metadata_of_input(node._edge_nr(index))
            if metadata is not None and (
                grad.dtype is not metadata.dtype
                or grad.device is not metadata.device
                or sizes_of(grad) != metadata.shape
            ):
                grads[index] = fit_gradient(grad, metadata, node, index)
        index += 1


def fit_gradient(
    grad: TensorBase, metadata: InputMetadata, node: Node | None, index: i64
) -> TensorBase:
    """The gradient summed to the shape and cast to the dtype that it should have.

    `node` is where it comes from; None if it was given to `backward` itself.
    """
    result: Any = grad
    if sizes_of(grad) != metadata.shape:
        if not is_expandable_to(metadata.shape, sizes_of(grad)):
            raise RuntimeError(
                f"{_invalid(node, index)} - got {list(sizes_of(grad))} but expected shape "
                f"compatible with {list(metadata.shape)}"
            )
        result = sum_to_shape(result, metadata.shape)
    if grad.dtype is not metadata.dtype and metadata.dtype is not ANY_DTYPE:
        if grad.dtype.category == COMPLEX and metadata.dtype.category != COMPLEX:
            result = F.real(result)
        if result.dtype is not metadata.dtype:
            result = result.to(metadata.dtype)
    if grad.device is not metadata.device:
        if sizes_of(result):
            raise RuntimeError(
                f"{_invalid(node, index)} - expected device {metadata.device} but got {grad.device}"
            )
        result = result.to(metadata.device)
    fitted: TensorBase = result
    return fitted


def _invalid(node: Node | None, index: i64) -> str:
    who = "" if node is None else f"Function {name_of(node)} returned an "
    return f"{who}invalid gradient at index {int(index)}"


def is_expandable_to(shape: tuple[int, ...], desired: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to `desired`."""
    if len(shape) > len(desired):
        return False
    for offset in range(1, len(shape) + 1):
        if shape[-offset] != desired[-offset] and shape[-offset] != 1:
            return False
    return True


def sum_to_shape(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the dimensions that broadcasting added or stretched."""
    sizes = sizes_of(tensor)
    added = len(sizes) - len(shape)
    dims = [
        dim
        for dim in range(len(sizes))
        if dim < added or (shape[dim - added] == 1 and sizes[dim] != 1)
    ]
    result = F.sum(tensor, dims, True) if dims else tensor
    return F._unsafe_view(result, shape) if added > 0 else result
