"""Steps of optimizers: all parameters in one call, each by blocks that stay in the cache.

Operations come in the order in which operators on one tensor would do them, so the bits are the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

Array = Any

# So many elements of a parameter, its gradient and its state fit into a core's own cache.
_BLOCK: Final = 1 << 14


def update_sgd(
    parameters: Sequence[Array],
    grads: Sequence[Array],
    buffers: Sequence[Array],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    # NumPy takes numbers of other types than Python's own for float64, and computes so.
    rate, momentum, kept = -float(lr), float(momentum), 1 - float(dampening)
    for p, g, *buffer in _blocks(parameters, grads, buffers):
        g = _decayed(p, g, weight_decay, maximize)
        if buffer:
            (v,) = buffer
            np.multiply(v, momentum, v)
            np.add(v, g if kept == 1 else g * kept, v)
            g = g + v * momentum if nesterov else v
        np.add(p, g * rate, p)


def update_adam(
    parameters: Sequence[Array],
    grads: Sequence[Array],
    means: Sequence[Array],
    squares: Sequence[Array],
    largest: Sequence[Array],
    rates: Sequence[float],
    epsilons: Sequence[float],
    beta1: float,
    beta2: float,
    decay: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    # NumPy takes numbers of other types than Python's own for float64, and computes so.
    beta1, beta2, shrink = float(beta1), float(beta2), 1 - float(decay)
    near = abs(1 - beta1) < 0.5
    numbers = [list(map(float, each)) for each in (rates, epsilons)]
    lists = (*numbers, parameters, grads, means, squares, largest)
    for rate, epsilon, p, g, mean, square, *most in _blocks(*lists):
        if shrink != 1:
            np.multiply(p, shrink, p)
        g = _decayed(p, g, weight_decay, maximize)
        # As lerp does: from the end that is nearer.
        spare = np.subtract(g, mean)
        np.multiply(spare, 1 - beta1 if near else 1 - (1 - beta1), spare)
        if near:
            np.add(mean, spare, mean)
        else:
            np.subtract(g, spare, mean)
        np.multiply(square, beta2, square)
        np.multiply(g, 1 - beta2, spare)
        np.multiply(spare, g, spare)
        np.add(square, spare, square)
        if most:
            square = np.maximum(most[0], square, out=most[0])
        np.sqrt(square, spare)
        np.add(spare, epsilon, spare)
        step = np.multiply(mean, -rate)
        np.divide(step, spare, step)
        np.add(p, step, p)


def _decayed(p: Array, g: Array, weight_decay: float, maximize: bool) -> Array:
    if maximize:
        g = -g
    return g + p * float(weight_decay) if weight_decay else g


def _blocks(*lists: Sequence[Any]) -> Iterator[list[Any]]:
    """What lists have place by place; large arrays of a place in parts, numbers as they are."""
    given = [each for each in lists if each]
    for items in zip(*given, strict=True):
        arrays = [item for item in items if isinstance(item, np.ndarray)]
        count = arrays[0].size
        if not arrays[0].ndim:
            # For 0-dim arrays, NumPy would return numbers.
            yield [item[None] if isinstance(item, np.ndarray) else item for item in items]
            continue
        if count <= _BLOCK or not all(each.flags.c_contiguous for each in arrays):
            yield list(items)
            continue
        flat = [item.reshape(-1) if isinstance(item, np.ndarray) else item for item in items]
        for start in range(0, count, _BLOCK):
            yield [
                item[start : start + _BLOCK] if isinstance(item, np.ndarray) else item
                for item in flat
            ]


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_update_sgd": update_sgd,
    "_update_adam": update_adam,
}
