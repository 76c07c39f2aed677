"""Elementwise operators of one tensor that are others under another name."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.dtype import bool_

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def negative(self: Tensor) -> Tensor:
    return F.neg(self)


def absolute(self: Tensor) -> Tensor:
    return F.abs(self)


def positive(self: Tensor) -> Tensor:
    if self.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def square(self: Tensor) -> Tensor:
    return F.pow(self, 2)


def conj(self: Tensor) -> Tensor:
    return F.conj_physical(self) if self.dtype.is_complex else self
