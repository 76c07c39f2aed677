"""Arguments of special functions, checked in PyTorch's words."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

from plugrad.ops.prepare.pointwise_discrete import floating
from plugrad.tensor.base import TensorBase


def check_polygamma(n: int, self: Any) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


def check_igamma(self: Any, other: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(other, TensorBase):
        floating(self, other, "igamma_cpu")


def check_igammac(self: Any, other: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(other, TensorBase):
        floating(self, other, "igammac_cpu")
