"""Transforms of each element."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.transforms.base import Transform
from plugrad_distributions.distributions.utils import sum_rightmost

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


class _SameClass(Transform):
    """A transform without parameters: two of the same class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_SameClass):
    """y = exp(x)

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.ExpTransform()(plugrad.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """y = x**exponent

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.PowerTransform(2.0)(plugrad.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        sign = getattr(self.exponent, "sign", None)
        return math.copysign(1, self.exponent) if sign is None else sign()

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool(plugrad.as_tensor(self.exponent == other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def _broadcast(self, shape: Any) -> Size:
        return Size(plugrad.broadcast_shapes(shape, getattr(self.exponent, "shape", ())))

    def forward_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)


def _clipped_sigmoid(x: Any) -> Any:
    found = plugrad.finfo(x.dtype)
    return plugrad.clamp(plugrad.sigmoid(x), min=found.tiny, max=1.0 - found.eps)


class SigmoidTransform(_SameClass):
    """y = 1 / (1 + exp(-x)), clamped away from 0 and 1 by the precision of the dtype.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.SigmoidTransform()(plugrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        found = plugrad.finfo(y.dtype)
        y = y.clamp(min=found.tiny, max=1.0 - found.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -plugrad.softplus(-x) - plugrad.softplus(x)


class SoftplusTransform(_SameClass):
    """y = log(1 + exp(x)); x itself for x > 20.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.SoftplusTransform()(plugrad.tensor([0.0, 1.0]))
    tensor([0.6931, 1.3133])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return plugrad.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -plugrad.softplus(-x)


class TanhTransform(_SameClass):
    """y = tanh(x). The inverse has few exact digits near -1 and 1: use a cache there.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.TanhTransform()(plugrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return plugrad.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2) without cancellation.
        return 2.0 * (math.log(2.0) - x - plugrad.softplus(-2.0 * x))


class AbsTransform(_SameClass):
    """y = |x|; its inverse gives the nonnegative value.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.AbsTransform()(plugrad.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale x; the last `event_dim` dimensions form one event.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.AffineTransform(1.0, 2.0)(plugrad.tensor([-1.0, 2.0]))
    tensor([-1.,  5.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _numbers(self) -> Any:
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._numbers()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._numbers()

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(plugrad.as_tensor(mine == theirs).all()) for mine, theirs in pairs)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            scale: Any = self.scale
            return 1 if float(scale) > 0 else -1 if float(scale) < 0 else 0
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale = self.scale
        if isinstance(scale, Tensor):
            each = plugrad.abs(scale).log().expand(plugrad.broadcast_shapes(scale.shape, x.shape))
        else:
            each = plugrad.full_like(x, math.log(abs(scale)))
        return sum_rightmost(each, self.event_dim)

    def _broadcast(self, shape: Any) -> Size:
        parameters = [getattr(value, "shape", ()) for value in (self.loc, self.scale)]
        return Size(plugrad.broadcast_shapes(shape, *parameters))

    def forward_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)


class CumulativeDistributionTransform(Transform):
    """y = the probability of values up to x, for a distribution of numbers.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> normal = plugrad.distributions.Normal(0.0, 1.0)
    >>> layer = transforms.CumulativeDistributionTransform(normal)
    >>> layer(plugrad.tensor([0.0]))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
