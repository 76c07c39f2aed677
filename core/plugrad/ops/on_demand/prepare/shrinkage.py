"""Arguments of shrinkage functions, checked in PyTorch's words."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

from plugrad.dtype import finfo, float64
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import stored_scalar


def hardshrink(self: TensorBase, lambd: Any) -> tuple[object, ...]:
    check_real_floating("hardshrink_cpu", self.dtype)
    return (self, stored_scalar(lambd, self.dtype))


def softshrink(self: TensorBase, lambd: Any) -> tuple[object, ...]:
    check_real_floating("softshrink_check", self.dtype)
    lambd = stored_scalar(lambd, float64)
    most = finfo(self.dtype).max
    if not 0 <= lambd <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {self.dtype.scalar_name}, but "
            f"found {lambd:g}"
        )
    return (self, lambd)
