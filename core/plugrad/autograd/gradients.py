"""The gradients that a backward pass starts from: checked, and made where one may be missing."""

from __future__ import annotations

from typing import Any

from plugrad._generated import functions as F
from plugrad.autograd.graph import GradientEdge
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.size import as_size


def make_grads(
    outputs: tuple[Any, ...], grads: tuple[Any, ...], batched: bool
) -> tuple[TensorBase | None, ...]:
    """One gradient for each of `outputs`: what was given for it, or 1 if it has one element.

    Args:
        outputs: tensors or gradient edges.
        grads: a tensor of the output's shape, or None; with `batched`, one more dimension in front.

    Raises:
        RuntimeError: a shape does not fit; one of the two is complex; nothing was given for a real
            output of several elements, or for a complex one.
        TypeError: neither a tensor nor None.
    """
    made: list[TensorBase | None] = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        shape, dtype = _looks(output)
        if isinstance(grad, TensorBase):
            _check(grad, shape, dtype, index, batched, output)
            made.append(grad)
        elif grad is None:
            made.append(_implicit(output, shape, dtype))
        else:
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
    return tuple(made)


def calculate_shape(output: Any, grad: TensorBase, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output, a tensor or a gradient edge, and of a gradient without its batch."""
    given = sizes_of(grad)
    shape = as_size(given[1:] if is_grads_batched else given)
    return as_size(_looks(output)[0]), shape


def _looks(output: Any) -> tuple[tuple[int, ...], DType]:
    if isinstance(output, TensorBase):
        return sizes_of(output), output.dtype
    if not isinstance(output, GradientEdge):
        raise AssertionError("Expected output to be a plugrad.Tensor")
    metadata = output.node._input_metadata[output.output_nr]
    return metadata.shape, metadata.dtype


def _check(
    grad: TensorBase, shape: tuple[int, ...], dtype: DType, index: int, batched: bool, output: Any
) -> None:
    given = sizes_of(grad)
    if batched:
        if not given:
            raise IndexError("invalid index of a 0-dim tensor: a batch needs a first dimension")
        if given[0] == 0:
            raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
        given = given[1:]
    if given != shape:
        mismatch = (
            f"grad_output[{index}] has a shape of {as_size(given)} and output[{index}] has a shape "
            f"of {as_size(shape)}."
        )
        if not batched:
            raise RuntimeError(f"Mismatch in shape: {mismatch}")
        if isinstance(output, GradientEdge):
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
            "the batch dimension. The sizes of the remaining dimensions are expected to match the "
            f"shape of corresponding output, but a mismatch was detected: {mismatch} If you only "
            "want some tensors in `grad_output` to be considered batched, consider using vmap."
        )
    if dtype.is_complex != grad.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{index}] has a dtype of {grad.dtype} and "
            f"output[{index}] has a dtype of {dtype}."
        )


def _implicit(output: Any, shape: tuple[int, ...], dtype: DType) -> TensorBase | None:
    """The gradient 1 of an output of one element; None of one that needs no gradient."""
    if isinstance(output, TensorBase) and not needs_grad(output):
        return None
    count = 1
    for size in shape:
        count *= size
    if count != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {dtype}"
        )
    made: TensorBase
    if isinstance(output, TensorBase):
        made = F.ones_like(output)
    else:
        device = output.node._input_metadata[output.output_nr].device
        made = F.ones(shape, dtype=dtype, device=device)
    return made


def batch_size_of(grads: tuple[TensorBase | None, ...]) -> int:
    """How many gradients are in each batch of them, which has its dimension in front.

    Raises:
        ValueError: one has no such dimension, or they are not of one length.
    """
    lengths: list[int] = []
    for grad in grads:
        if grad is None or not sizes_of(grad):
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input "
                "is a Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )
        if sizes_of(grad)[0] not in lengths:
            lengths.append(sizes_of(grad)[0])
    if len(lengths) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{lengths} for the mapped dimension"
        )
    return lengths[0]
