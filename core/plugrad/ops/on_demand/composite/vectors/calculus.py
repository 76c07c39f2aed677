"""Integrals by the trapezoidal rule, and derivatives by finite differences."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import bool_, uint8
from plugrad.ops.prepare.reductions import wrap_dim, wrap_dims
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Any:
    place = wrap_dim(dim, y.ndim)
    if sizes_of(y)[place] == 0:
        return _no_integral(y, place)
    pairs = _between(y, place) * _widths(y, x, place, "trapezoid")
    return F.div(F.sum(pairs, place), 2.0)


def trapezoid_apart(y: Tensor, dx: Any, dim: int) -> Any:
    place = wrap_dim(dim, y.ndim)
    if sizes_of(y)[place] == 0:
        return _no_integral(y, place)
    _check_apart(y, dx, "trapezoid")
    ends = y.select(place, 0) + y.select(place, -1)
    return (F.sum(y, place) - ends * 0.5) * float(dx)


def cumulative_trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Any:
    place = wrap_dim(dim, y.ndim)
    pairs = _between(y, place) * _widths(y, x, place, "cumulative_trapezoid")
    return F.div(F.cumsum(pairs, place), 2.0)


def cumulative_trapezoid_apart(y: Tensor, dx: Any, dim: int) -> Any:
    place = wrap_dim(dim, y.ndim)
    _check_apart(y, dx, "cumulative_trapezoid")
    return F.cumsum(_between(y, place), place) * (float(dx) / 2)


def _no_integral(y: Tensor, place: int) -> Any:
    sizes = sizes_of(y)
    return F.zeros((*sizes[:place], *sizes[place + 1 :]), dtype=y.dtype, device=y.device)


def _check_apart(y: Tensor, dx: Any, name: str) -> None:
    if y.dtype is bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _between(y: Any, place: int) -> Any:
    """The sums of neighbours; none for less than two samples."""
    count = max(sizes_of(y)[place] - 1, 0)
    later = min(1, sizes_of(y)[place])
    return y.narrow(place, 0, count) + y.narrow(place, later, count)


def _widths(y: Tensor, x: Tensor, place: int, name: str) -> Any:
    """How far apart neighbours are, in a shape that broadcasts with them."""
    if y.dtype is bool_ or x.dtype is bool_:
        raise RuntimeError(
            f"{name}: received a bool input for `x` or `y`, but bool is not supported"
        )
    places: Any = x
    if x.ndim == 1:
        if sizes_of(x)[0] != sizes_of(y)[place]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        places = x.reshape([-1 if axis == place else 1 for axis in range(y.ndim)])
    elif x.ndim < y.ndim:
        places = x.reshape((1,) * (y.ndim - x.ndim) + sizes_of(x))
    count = max(sizes_of(places)[place] - 1, 0)
    later = min(1, sizes_of(places)[place])
    return places.narrow(place, later, count) - places.narrow(place, 0, count)


def gradient_along(self: Tensor, dim: Sequence[int], edge_order: int) -> tuple[Any, ...]:
    return gradient(self, None, dim, edge_order)


def gradient(self: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[Any, ...]:
    """`spacing` is None, a number, or a sequence of numbers or of vectors."""
    dims = _gradient_dims(self, spacing, dim, edge_order)
    if isinstance(spacing, (list, tuple)):
        steps = list(spacing)
    else:
        steps = [1 if spacing is None else spacing] * len(dims)
    found = []
    for place, step in zip(dims, steps, strict=True):
        if isinstance(step, TensorBase):
            found.append(_uneven(self, place, step, edge_order))
        else:
            found.append(_even(self, place, step, edge_order))
    return tuple(found)


def _gradient_dims(self: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[int, ...]:
    """The dimensions to go along; errors for whatever does not fit."""
    if self.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    given = (dim,) if isinstance(dim, int) else dim
    several = isinstance(spacing, (list, tuple))
    count = len(spacing) if several else 0
    if several and given is not None and len(given) != count:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got a spacing argument of length {count} and "
            f"a dim argument of length {len(given)}."
        )
    if several and given is None and count != self.ndim:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {self.ndim}', since dim argument was not given, but got a "
            f"list of length {count}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if given is not None and len(given) == 0:
        return ()
    if self.ndim == 0 and given is not None:
        for item in given:
            wrap_dim(item, 0)
    dims = wrap_dims(given, self.ndim)
    if several:
        for item in spacing:
            if isinstance(item, TensorBase) and item.ndim != 1:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have one dimension, but "
                    f"got an element with {item.ndim} dimensions!"
                )
        for place, item in zip(dims, spacing, strict=True):
            size = sizes_of(self)[place]
            if isinstance(item, TensorBase) and sizes_of(item) != (size,):
                raise RuntimeError(
                    f"torch.gradient expected a tensor of spacing to have a coordinate for each of "
                    f"the {size} samples along dimension {place}, but got {sizes_of(item)[0]}"
                )
    for place in dims:
        if sizes_of(self)[place] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return dims


def _at(self: Any, place: int, start: int) -> Any:
    """One sample of each row along a dimension, which stays."""
    size = sizes_of(self)[place]
    return self.narrow(place, start % size, 1)


def _even(self: Any, place: int, step: Any, edge_order: int) -> Any:
    size = sizes_of(self)[place]
    if edge_order == 1:
        first = (_at(self, place, 1) - _at(self, place, 0)) / step
        last = (_at(self, place, -1) - _at(self, place, -2)) / step
    else:
        first = _one_sided(self, place, (0, 1, 2), (-1.5 / step, 2 / step, -0.5 / step))
        last = _one_sided(self, place, (-3, -2, -1), (0.5 / step, -2 / step, 1.5 / step))
    inside = self.narrow(place, 2, size - 2) - self.narrow(place, 0, size - 2)
    return F.cat([first, inside / (2 * step), last], place)


def _uneven(self: Any, place: int, where: Any, edge_order: int) -> Any:
    """For unevenly spaced samples, by the parabola through three of them."""
    size = sizes_of(self)[place]
    shape = [-1 if axis == place else 1 for axis in range(self.ndim)]
    gaps = F.diff(where).reshape(shape)
    if edge_order == 1:
        first = (_at(self, place, 1) - _at(self, place, 0)) / _at(gaps, place, 0)
        last = (_at(self, place, -1) - _at(self, place, -2)) / _at(gaps, place, -1)
    else:
        a, b = _at(gaps, place, 0), _at(gaps, place, 1)
        weights = (-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
        first = _one_sided(self, place, (0, 1, 2), weights)
        a, b = _at(gaps, place, -2), _at(gaps, place, -1)
        weights = (b / (a * (a + b)), -(a + b) / (a * b), (a + 2 * b) / (b * (a + b)))
        last = _one_sided(self, place, (-3, -2, -1), weights)
    count = size - 2
    before, behind = gaps.narrow(place, 0, count), gaps.narrow(place, min(1, size - 1), count)
    inside = (
        self.narrow(place, 0, count) * (-behind / (before * (before + behind)))
        + self.narrow(place, 1, count) * ((behind - before) / (before * behind))
        + self.narrow(place, 2, count) * (before / (behind * (before + behind)))
    )
    return F.cat([first, inside, last], place)


def _one_sided(self: Any, place: int, samples: tuple[int, ...], weights: tuple[Any, ...]) -> Any:
    parts = [
        _at(self, place, sample) * weight for sample, weight in zip(samples, weights, strict=True)
    ]
    return parts[0] + parts[1] + parts[2]
