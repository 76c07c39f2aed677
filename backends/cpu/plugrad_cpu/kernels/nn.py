"""Kernels of embedding, dropout and one-hot vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import OUTSIDE_TABLE, one_hot_classes
from plugrad_cpu.kernels.linalg import is_narrow, widen
from plugrad_cpu.kernels.loss import row_numbers
from plugrad_cpu.kernels.random import kept_by_dropout
from plugrad_cpu.numerics.sorting import stable_order

Array = Any
Kernel = Callable[..., Any]


def _check_rows(indices: Array, rows: int) -> None:
    """Negative indices are large ones when taken as unsigned."""
    if indices.size and np.maximum.reduce(indices.view(np.uint64), None) >= rows:
        raise IndexError(OUTSIDE_TABLE)


def embedding(weight: Array, indices: Array) -> Any:
    _check_rows(indices, weight.shape[0])
    return weight.take(indices, 0)


def embedding_backward(
    grad: Array, indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """Rows of `grad` added up by index: sorted, so that equal indices are neighbours."""
    if is_narrow(grad):
        return embedding_backward(
            widen(grad), indices, rows, padding_idx, scale_grad_by_freq
        ).astype(grad.dtype)
    width = grad.shape[-1]
    out = np.zeros((rows, width), grad.dtype)
    flat = indices.reshape(-1)
    if flat.size == 0:
        return out
    order = stable_order(flat)
    ordered = flat.take(order)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums = np.add.reduceat(grad.reshape(flat.size, width).take(order, 0), starts, 0)
    if scale_grad_by_freq:
        sums /= np.diff(starts, append=flat.size)[:, None].astype(grad.dtype)
    out[ordered.take(starts)] = sums
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def dropout(x: Array, p: float, training: bool, generator: Any) -> tuple[Any, Any]:
    """The input with elements dropped and the others scaled, and the mask of those kept."""
    if not training:
        return x.copy(), np.ones(x.shape, np.bool_)
    kept = kept_by_dropout(generator, x, p)
    if p == 1:
        return np.zeros(x.shape, x.dtype), kept
    return dropout_backward(x, kept, 1 / (1 - p)), kept


def dropout_backward(grad: Array, kept: Array, scale: float) -> Any:
    out = np.asarray(np.multiply(grad, kept))
    out *= np.array(scale, out.dtype)
    return out


def one_hot(indices: Array, classes: int) -> Any:
    if indices.size:
        classes = one_hot_classes(int(indices.min()), int(indices.max()), classes)
    out = np.zeros((indices.size, classes), np.int64)
    out[row_numbers(indices.size), indices.reshape(-1)] = 1
    return out.reshape(*indices.shape, classes)


KERNELS: Final[dict[str, Kernel]] = {
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "native_dropout": dropout,
    "native_dropout_backward": dropout_backward,
    "one_hot": one_hot,
}
