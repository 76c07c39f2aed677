"""The matrices of `autograd.functional.jacobian`, by rows or by columns."""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
from collections.abc import Callable, Sequence
from typing import Any

from plugrad._generated import functions as F
from plugrad.autograd.functional.arguments import (
    CONSTANT,
    Tensors,
    as_tuple,
    fresh,
    gradients,
    linear_gradients,
)
from plugrad.autograd.grad_mode import enable_grad, is_grad_enabled


def rows_one_by_one(
    outputs: Tensors, points: Tensors, create_graph: bool, strict: bool
) -> list[Tensors]:
    """Per output, the matrix for each of `points`."""
    found: list[Tensors] = []
    for number, output in enumerate(outputs):
        rows: list[list[Any]] = [[] for _ in points]
        flat = output.reshape(-1)
        for row in range(output.numel()):
            grads = gradients((flat[row],), points, None, create_graph, retain_graph=True)
            for index, (gradient, point) in enumerate(zip(grads, points, strict=True)):
                if gradient is None:
                    if strict:
                        raise RuntimeError(
                            f"Output {number} of the user-provided function is independent of "
                            f"input {index}. This is not allowed in strict mode."
                        )
                    gradient = F.zeros_like(point)
                elif strict and create_graph and not gradient.requires_grad:
                    raise RuntimeError(CONSTANT.format("jacobian", number))
                rows[index].append(gradient)
        found.append(
            tuple(
                F.stack(rows_of_point).view(output.shape + point.shape)
                for rows_of_point, point in zip(rows, points, strict=True)
            )
        )
    return found


def rows_at_once(
    outputs: Tensors, points: Tensors, create_graph: bool, strict: bool
) -> list[Tensors]:
    """Per output, the matrix for each of `points`: all rows as one batch of gradients."""
    grads = gradients(
        tuple(output.reshape(-1) for output in outputs),
        points,
        standard_basis(outputs, [output.numel() for output in outputs]),
        create_graph,
        batched=True,
    )
    counts = [output.numel() for output in outputs]
    per_point: list[list[Any]] = []
    for gradient, point in zip(grads, points, strict=True):
        if gradient is None:
            gradient = F.zeros_like(point).expand((sum(counts), *point.shape))
        parts = gradient.split(counts, 0)
        per_point.append(
            [
                part.reshape(output.shape + point.shape)
                for part, output in zip(parts, outputs, strict=True)
            ]
        )
    return list(zip(*per_point, strict=True))


def standard_basis(tensors: Tensors, counts: Sequence[int]) -> Tensors:
    """For each tensor its part of the unit vectors of all elements: (total, elements).

    Args:
        counts: the tensors' numbers of elements.
    """
    basis = []
    before = 0
    for tensor, count in zip(tensors, counts, strict=True):
        part: Any = F.zeros(sum(counts), count, dtype=tensor.dtype, device=tensor.device)
        part[before : before + count] = F.eye(count, dtype=tensor.dtype, device=tensor.device)
        basis.append(part)
        before += count
    return tuple(basis)


def jacobian_by_columns(
    func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian column by column: the derivative along each unit vector, as in `jvp`."""
    if strict:
        raise RuntimeError(
            'plugrad.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are '
            'not supported together (yet). Please either set `strict=False` or `strategy="reverse-'
            'mode"`.'
        )
    nested, given = as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )
    recorded = is_grad_enabled()
    with enable_grad():
        points = fresh(given, recorded, True)
        nested_outputs, outputs = as_tuple(func(*points), "outputs", "jacobian")
        weights, grads = linear_gradients(outputs, points)
    create_graph = recorded and any(tensor.requires_grad for tensor in given)
    counts = [point.numel() for point in points]
    basis = tuple(
        part.reshape((-1, *point.shape))
        for part, point in zip(standard_basis(points, counts), points, strict=True)
    )
    columns = gradients(grads, weights, basis, create_graph, batched=True)
    found: list[Tensors] = []
    for column, output in zip(columns, outputs, strict=True):
        if column is None:
            column = F.zeros_like(output).expand((sum(counts), *output.shape))
        last_first = (*range(1, column.ndim), 0)
        found.append(
            tuple(
                part.permute(last_first).reshape(output.shape + point.shape)
                for part, point in zip(column.split(counts, 0), points, strict=True)
            )
        )
    matrices = tuple(of_output if nested else of_output[0] for of_output in found)
    return matrices if nested_outputs else matrices[0]
