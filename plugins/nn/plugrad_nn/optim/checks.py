"""Checks of optimizers' arguments, with PyTorch's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad import Tensor

_WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def check_tensor(name: str, value: object) -> None:
    """An option may be a tensor of one real element.

    Raises:
        ValueError: it has more.
        TypeError: it is complex.
    """
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if value.is_complex():
            raise TypeError(f"Tensor {name} must be real, not {value.dtype}")


def require_not_negative(**options: Any) -> None:
    """Raises ValueError for the first option below zero, or a learning rate of many elements."""
    if "lr" in options:
        check_tensor("lr", options["lr"])
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}")


def require_betas(betas: Sequence[Any]) -> None:
    """Raises ValueError for decay rates that are not in [0, 1)."""
    for index, beta in enumerate(betas[:2]):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def require_one_way(*, foreach: bool | None, differentiable: bool, fused: bool | None) -> None:
    """Raises RuntimeError for implementations that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
