"""The line search of L-BFGS: a step size that meets the strong Wolfe conditions.

Source: Nocedal and Wright 2006, algorithms 3.5 and 3.6, with cubic interpolation (equation 3.59)
and the safeguards of Schmidt's minFunc, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor

# Sizes and slopes are numbers or tensors of no dimension, in the dtype of the parameters.
Number = Any


@dataclass
class Point:
    """The values at one step size; the slope is the gradient times the direction."""

    size: Number
    loss: float
    grad: Tensor
    slope: Number


def cubic_minimum(a: Point, b: Point, bounds: tuple[Number, Number] | None = None) -> Number:
    """The minimum of the cubic through two points, within bounds; else the midpoint."""
    low, high = bounds or ((a.size, b.size) if a.size <= b.size else (b.size, a.size))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.size - b.size)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    left, right = (a, b) if a.size <= b.size else (b, a)
    share = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    return min(max(right.size - (right.size - left.size) * share, low), high)


def strong_wolfe(
    evaluate: Callable[[Number], tuple[float, Tensor]],
    direction: Tensor,
    start: Point,
    size: Number,
    *,
    tolerance_change: float = 1e-9,
    max_evaluations: int = 25,
    sufficient_decrease: float = 1e-4,
    curvature: float = 0.9,
) -> tuple[Point, int]:
    """Finds a step along a direction that lowers the loss, and the slope, by enough.

    Args:
        evaluate: the loss and the gradient at a step size.
        direction: the search direction.
        start: the point of step size 0.
        size: the first size to try.
        tolerance_change: the length of an interval that is not searched further.
        max_evaluations: the largest number of evaluations.
        sufficient_decrease, curvature: the constants of the conditions, c1 and c2.

    Returns:
        The point, and how often the loss was evaluated.
    """
    evaluations = 0

    def at(size: Number) -> Point:
        nonlocal evaluations
        evaluations += 1
        loss, grad = evaluate(size)
        return Point(size, loss, grad, grad.dot(direction))

    def too_high(point: Point) -> bool:
        allowed = start.loss + sufficient_decrease * point.size * start.slope
        return bool(point.loss > allowed)

    def flat_enough(point: Point) -> bool:
        return bool(abs(point.slope) <= -curvature * start.slope)

    # Widen the interval until it contains a minimum.
    former, point = start, at(size)
    tries = 0
    while tries < max_evaluations:
        if too_high(point) or (tries > 1 and point.loss >= former.loss):
            interval = [former, point]
            break
        if flat_enough(point):
            return point, evaluations
        if point.slope >= 0:
            interval = [former, point]
            break
        least = point.size + 0.01 * (point.size - former.size)
        size = cubic_minimum(former, point, (least, point.size * 10))
        former, point = point, at(size)
        tries += 1
    else:
        interval = [start, point]

    # Narrow it until a point meets the conditions.
    reach = direction.abs().max()
    close_to_an_end = False
    interval.sort(key=lambda point: point.loss)
    while tries < max_evaluations:
        best, other = interval
        if abs(other.size - best.size) * reach < tolerance_change:
            break
        # By order of their sizes, as they were found.
        first, second = sorted(interval, key=lambda point: float(point.size))
        size = cubic_minimum(first, second)
        low, high = sorted((best.size, other.size), key=float)
        margin = 0.1 * (high - low)
        if min(high - size, size - low) < margin:
            # The second time in a row, it must stay away from the ends.
            if close_to_an_end or size >= high or size <= low:
                size = high - margin if abs(size - high) < abs(size - low) else low + margin
                close_to_an_end = False
            else:
                close_to_an_end = True
        else:
            close_to_an_end = False
        point = at(size)
        tries += 1
        if too_high(point) or point.loss >= best.loss:
            interval = sorted([best, point], key=lambda point: point.loss)
        else:
            if flat_enough(point):
                return point, evaluations
            if point.slope * (other.size - best.size) >= 0:
                other = best
            interval = [point, other]
    return interval[0], evaluations


def flat(tensors: list[Tensor]) -> Tensor:
    """Tensors as one vector; complex numbers as pairs of real ones."""
    parts = [plugrad.view_as_real(t) if t.is_complex() else t for t in tensors]
    return plugrad.cat([part.reshape(-1) for part in parts])
