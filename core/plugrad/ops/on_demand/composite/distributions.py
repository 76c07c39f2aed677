"""Drawing from distributions for backends that have no kernels: from uniform and normal numbers of
the backend, or on the CPU where numbers are rejected. The gradients are formulas for all backends.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.device import CPU
from plugrad.dtype import DType
from plugrad.ops.composite.random import draws_on_host, empty_on_host, on_host, widest
from plugrad.ops.on_demand.prepare import distributions as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def cauchy_(self: Tensor, median: float, sigma: float, generator: object) -> Tensor:
    prepare.cauchy_(self, median, sigma, generator)
    if draws_on_host(self.device):
        empty = empty_on_host(self, "cauchy_", generator)
        return self.copy_(empty.cauchy_(median, sigma, generator=generator))
    return self.copy_(((_uniform(self, generator) - 0.5) * math.pi).tan() * sigma + median)


def log_normal_(self: Tensor, mean: float, std: float, generator: object) -> Tensor:
    prepare.log_normal_(self, mean, std, generator)
    if draws_on_host(self.device):
        empty = empty_on_host(self, "log_normal_", generator)
        return self.copy_(empty.log_normal_(mean, std, generator=generator))
    return self.copy_((_drawn(F.randn, self, generator) * std + mean).exp())


def geometric_(self: Tensor, p: float, generator: object) -> Tensor:
    prepare.geometric_(self, p, generator)
    if draws_on_host(self.device):
        empty = empty_on_host(self, "geometric_", generator)
        return self.copy_(empty.geometric_(p, generator=generator))
    return self.copy_((_uniform(self, generator).log() / math.log1p(-p)).ceil())


def _uniform(self: Tensor, generator: object) -> Tensor:
    return _drawn(F.rand, self, generator)


def _drawn(factory: Any, self: Tensor, generator: object) -> Tensor:
    return factory(
        sizes_of(self), generator=generator, dtype=widest(self.device), device=self.device
    )


def poisson(self: Tensor, generator: object) -> Tensor:
    prepare.poisson(self, generator)
    drawn = F.poisson(on_host(self, "poisson", generator), generator=generator)
    return F._to_device(drawn, self.device)


def binomial(count: Tensor, prob: Tensor, generator: object) -> Tensor:
    prepare.binomial(count, prob, generator)
    trials = on_host(count, "binomial", generator)
    drawn = F.binomial(trials, F._to_device(prob.detach(), CPU), generator=generator)
    return F._to_device(drawn, count.device)


def standard_gamma(self: Tensor, generator: object) -> Tensor:
    prepare.standard_gamma(self, generator)
    drawn = F._standard_gamma(on_host(self, "_standard_gamma", generator), generator=generator)
    return F._to_device(drawn, self.device)


def sample_dirichlet(self: Tensor, generator: object) -> Tensor:
    prepare.sample_dirichlet(self, generator)
    drawn = F._sample_dirichlet(on_host(self, "_sample_dirichlet", generator), generator=generator)
    return F._to_device(drawn, self.device)


def _digamma(x: Tensor) -> Tensor:
    """The digamma function of positive numbers: they are shifted beyond 10, where the asymptotic
    series converges."""
    result = F.zeros_like(x)
    for _ in range(10):
        small = x < 10
        result = result - F.where(small, 1 / x, 0.0)
        x = F.where(small, x + 1, x)
    square = 1 / (x * x)
    return result + x.log() - 0.5 / x - square * _polynomial(square, _DIGAMMA)


# B_2k / 2k, from the last one on (Abramowitz and Stegun, 6.3.18).
_DIGAMMA: Final = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Any:
    """A polynomial with coefficients of falling powers."""
    value: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _rising(x: Tensor, coefficients: Sequence[float]) -> Any:
    """A polynomial with coefficients of rising powers."""
    return _polynomial(x, tuple(reversed(coefficients)))


# 0.8, 0.9 and 1.1 in float32, which PyTorch compares with.
_SMALL: Final = 0.800000011920929
_BELOW_MEAN: Final = 0.8999999761581421
_ABOVE_MEAN: Final = 1.100000023841858


def _widened(*tensors: Tensor) -> tuple[DType, list[Any]]:
    wide = widest(tensors[0].device)
    return tensors[0].dtype, [tensor.detach().to(wide) for tensor in tensors]


def standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """By a series for small numbers, a saddle point expansion for large shapes, and otherwise a
    rational approximation, as in PyTorch."""
    prepare.standard_gamma_grad(self, output)
    dtype, (alpha, x) = _widened(self, output)
    between = _gamma_between(alpha, x)
    large = F.where(
        (_BELOW_MEAN * alpha <= x) & (x <= _ABOVE_MEAN * alpha),
        _gamma_at_mean(alpha, x),
        _gamma_saddle(alpha, x),
    )
    found = F.where(alpha > 8, large, between)
    return F.where(x < _SMALL, _gamma_small(alpha, x), found).to(dtype)


def _gamma_small(alpha: Any, x: Any) -> Any:
    numerator: Any = 1.0
    first, second = 1 / alpha, 1 / (alpha * alpha)
    for term in range(1, 6):
        numerator = numerator * -x / term
        denominator = alpha + term
        first = first + numerator / denominator
        second = second + numerator / (denominator * denominator)
    # The power of x is in the density, too, and cancels.
    by_alpha = (x.log() - _digamma(alpha)) * first - second
    found = -by_alpha * x / (-x).exp()
    return F.where(found.isnan(), 0.0, found)


def _gamma_at_mean(alpha: Any, x: Any) -> Any:
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = (
        1440 * (alpha * alpha)
        + 6 * x * (53 - 120 * x)
        - 65 * x * x / alpha
        + alpha * (107 + 3600 * x)
    )
    return first * second / (1244160 * (alpha * alpha) * (alpha * alpha))


def _gamma_saddle(alpha: Any, x: Any) -> Any:
    root = (8 * alpha).sqrt()
    logarithm = (x / alpha).log()
    pole = root / (alpha - x)
    power = (x - alpha - alpha * logarithm) ** -1.5
    bracket = F.where(x < alpha, pole - power, pole + power)
    distance = (alpha - x) * (alpha - x)
    term = logarithm * bracket - (2 / alpha).sqrt() * (alpha + x) / distance
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return -stirling * x * term / root


# Coefficients of powers of log(x / alpha) (rows) and log(alpha) (columns), in the numerator and in
# the denominator.
_GAMMA_NUMERATOR: Final = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
)
_GAMMA_DENOMINATOR: Final = (
    (1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)


def _gamma_between(alpha: Any, x: Any) -> Any:
    u, v = (x / alpha).log(), alpha.log()

    def of_both(rows: Sequence[Sequence[float]]) -> Any:
        first, second, third = (_rising(v, row) for row in rows)
        return first + u * (second + u * third)

    return (of_both(_GAMMA_NUMERATOR) / of_both(_GAMMA_DENOMINATOR)).exp()


def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """By series near 0 and 1, a saddle point expansion for large concentrations, and otherwise a
    rational correction of an approximation, as in PyTorch."""
    prepare.dirichlet_grad(x, alpha, total)
    dtype, (x_, alpha_, total_) = _widened(x, alpha, total)
    beta = total_ - alpha_
    boundary = total_ * x_ * (1 - x_)
    found = _beta_between(x_, alpha_, beta, total_)
    large = (alpha_ > 6) & (beta > 6)
    found = F.where(large, _beta_saddle(x_, alpha_, beta, total_), found)
    near_one = (x_ >= 0.5) & (boundary < 0.75)
    found = F.where(near_one, -_beta_small_by_beta(1 - x_, beta, alpha_), found)
    near_zero = (x_ <= 0.5) & (boundary < 2.5)
    return F.where(near_zero, _beta_small_by_alpha(x_, alpha_, beta), found).to(dtype)


def _beta_small_by_alpha(x: Any, alpha: Any, beta: Any) -> Any:
    factor = _digamma(alpha) - _digamma(alpha + beta) - x.log()
    numerator: Any = 1.0
    series = 1 / alpha * (factor + 1 / alpha)
    for term in range(1, 11):
        numerator = numerator * (term - beta) * x / term
        denominator = alpha + term
        series = series + numerator / denominator * (factor + 1 / denominator)
    found = x * (1 - x) ** -beta * series
    return F.where(found.isnan(), 0.0, found)


def _beta_small_by_beta(x: Any, alpha: Any, beta: Any) -> Any:
    factor = _digamma(alpha + beta) - _digamma(beta)
    numerator: Any = 1.0
    product: Any = F.ones_like(x)
    derivative: Any = F.zeros_like(x)
    series = factor / alpha
    for term in range(1, 9):
        numerator = numerator * -x / term
        derivative = derivative * (beta - term) + product
        product = product * (beta - term)
        series = series + numerator / (alpha + term) * (derivative + factor * product)
    found = -((1 - x) ** (1 - beta)) * series
    return F.where(found.isnan(), 0.0, found)


def _beta_saddle(x: Any, alpha: Any, beta: Any, total: Any) -> Any:
    mean = alpha / total
    std = (alpha * beta / (total + 1)).sqrt() / total
    at_mean = (mean - 0.1 * std <= x) & (x <= mean + 0.1 * std)
    return F.where(
        at_mean, _beta_at_mean(x, alpha, beta, total), _beta_off_mean(x, alpha, beta, total, mean)
    )


def _beta_at_mean(x: Any, alpha: Any, beta: Any, total: Any) -> Any:
    powers = (
        47 * x * beta**4,
        (43 + 20 * (16 + 27 * beta) * x) * beta**3,
        3 * (59 + 180 * beta - 90 * x) * beta**2,
        (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
        8 * (1 - x) * (135 * beta - 11),
    )
    value = _rising(alpha, powers)
    numerator = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    denominator = 12960 * alpha**3 * beta**2 * (1 + 12 * total)
    return numerator / (1 - x) * value / denominator


def _stirling(x: Any) -> Any:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _beta_off_mean(x: Any, alpha: Any, beta: Any, total: Any, mean: Any) -> Any:
    factor = -x / (2 * alpha * beta / total).sqrt()
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    distance = alpha * (x - 1) + beta * x
    first = (2 * alpha * alpha * (x - 1) + alpha * beta * (x - 1) - x * beta * beta) / (
        (2 * alpha / beta).sqrt() * total**1.5 * distance * distance
    )
    ratio = (alpha / (total * x)).log()
    pole = (8 * alpha * beta / total).sqrt() / distance
    power = (beta * (beta / (total * (1 - x))).log() + alpha * ratio) ** -1.5
    return stirling * factor * (first + 0.5 * ratio * (pole + F.where(x < mean, power, -power)))


# For each power of u = log(x) and of a = log(alpha) - u, coefficients of powers of b = log(total) -
# a; first the numerator's, then the denominator's.
_BETA: Final = (
    (
        (
            (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
            (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
            (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
        ),
        (
            (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
            (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
            (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
        ),
        (
            (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
            (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
            (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
        ),
    ),
    (
        (
            (1.0, -0.02924021934, -0.04438342661, 0.007285809825),
            (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
            (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
        ),
        (
            (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
            (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
            (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
        ),
        (
            (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
            (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
            (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
        ),
    ),
)


def _beta_between(x: Any, alpha: Any, beta: Any, total: Any) -> Any:
    u = x.log()
    a = alpha.log() - u
    b = total.log() - a
    numerator, denominator = (
        _rising(u, [_rising(a, [_rising(b, cubic) for cubic in row]) for row in table])
        for table in _BETA
    )
    return numerator / denominator * x * (_digamma(total) - _digamma(alpha)) / beta
