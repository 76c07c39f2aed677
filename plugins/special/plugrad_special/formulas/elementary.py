"""Formulas, checks and decompositions of ops/elementary.yaml."""

from __future__ import annotations

import math

import plugrad
from plugrad import Tensor
from plugrad_special import special

LOG_10 = math.log(10.0)


def entr(x: Tensor) -> Tensor:
    return plugrad.where(x < 0, -math.inf, -plugrad.xlogy(x, x))


def rel_entr(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y) inside, 0 on the edge x = 0, inf outside."""
    inside = (x > 0) & (y > 0)
    one = plugrad.ones_like(x)
    value = x * (plugrad.where(inside, x, one) / plugrad.where(inside, y, one)).log()
    outside = plugrad.where((x == 0) & (y >= 0), 0.0, math.inf)
    return _with_nans(plugrad.where(inside, value, outside), x, y)


def kl_div(x: Tensor, y: Tensor) -> Tensor:
    outside = (x < 0) | (y < 0)
    value = rel_entr(x, y) - x + y
    return _with_nans(plugrad.where(outside, math.inf, value), x, y)


def _with_nans(value: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return plugrad.where((x + y).isnan(), math.nan, value)


def quotient_or_zero(x: Tensor, y: Tensor) -> Tensor:
    """x / y, 0 where both are 0."""
    return x / plugrad.where((x == 0) & (y == 0), plugrad.ones_like(y), y)


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    value = x * plugrad.where(x == 0, plugrad.zeros_like(y), y).log1p()
    return plugrad.where((x == 0) & y.isnan(), math.nan, value)


def log1p_where(x: Tensor, y: Tensor) -> Tensor:
    """The derivative of xlog1py by x."""
    if y.is_complex():
        return y.log1p().conj()
    return y.log1p().masked_fill((x == 0) & (y <= -1), 0.0)


def exp10(x: Tensor) -> Tensor:
    return (x * LOG_10).exp()


def exprel(x: Tensor) -> Tensor:
    at_zero = x == 0
    safe = plugrad.where(at_zero, plugrad.ones_like(x), x)
    return plugrad.where(at_zero, plugrad.ones_like(x), safe.expm1() / safe)


def cosm1(x: Tensor) -> Tensor:
    return -2 * (x / 2).sin().square()


def log_expit(x: Tensor) -> Tensor:
    return plugrad.logsigmoid(x if x.is_floating_point() else x.to(plugrad.get_default_dtype()))


def boxcox_by_order(logarithm: Tensor, order: Tensor) -> Tensor:
    """The derivative of (exp(order L) - 1) / order by the order, L^2 1F1(2; 3; order L) / 2."""
    at_edge = (logarithm == -math.inf) & (order > 0)
    safe = plugrad.where(at_edge, plugrad.zeros_like(logarithm), logarithm)
    inside = safe * safe * special.hyp1f1(2, 3, order * safe) / 2
    limit = plugrad.where(at_edge, order, plugrad.ones_like(order)).pow(-2)
    return plugrad.where(at_edge, limit, inside)


def check_lambertw(z: Tensor, k: int) -> None:
    if not z.is_complex() and k not in (0, -1):
        raise RuntimeError(
            f"lambertw(): branch {k} is not real anywhere; for a complex result pass a complex "
            "tensor"
        )
