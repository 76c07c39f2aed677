"""Complex numbers and their parts, based on the two views that pair real numbers."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.prepare import creation as prepare_creation
from plugrad.ops.prepare import pointwise_unary as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.math_bits import is_conj

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def complex_of_parts(real: Tensor, imag: Tensor) -> Tensor:
    prepare_creation.complex_of_parts(real, imag)
    shape = broadcast_shapes(sizes_of(real), sizes_of(imag))
    parts = [part.expand(shape).unsqueeze(-1) for part in (real, imag)]
    return F.view_as_complex(F.cat(parts, -1))


def real(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    # The conjugate, which may be lazy, has the same real part.
    return F.view_as_real(self.conj() if is_conj(self) else self).select(-1, 0)


def imag(self: Tensor) -> Tensor:
    prepare.imag(self)
    return F.view_as_real(self).select(-1, 1)


def conj_physical(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self.clone()
    return F.complex(F.real(self), -F.imag(self))


def angle(self: Tensor) -> Tensor:
    checked: Any = prepare.angle(self)
    given = checked[0]
    if self.dtype.is_complex:
        return F.atan2(F.imag(self), F.real(self))
    # A nan is added, which is itself then.
    half_turn = F.where(F.lt(given, 0), math.pi, F.zeros_like(given))
    return F.where(F.isnan(given), given, half_turn)
