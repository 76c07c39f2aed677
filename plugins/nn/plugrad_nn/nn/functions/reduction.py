"""The reduction of losses: "mean", "sum" or "none", by name, number or older flags."""

from __future__ import annotations

from typing import Final

from plugrad import Tensor

NUMBERS: Final = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def reduction_named(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction for PyTorch's older pair of flags, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduction_number(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The number that native operators use for it; ValueError if there is none."""
    name = reduction_named(size_average, reduce, reduction)
    if name not in NUMBERS:
        raise ValueError(f"{name} is not a valid value for reduction")
    return NUMBERS[name]


def reduced(
    losses: Tensor, reduction: str, message: str = "{} is not a valid value for reduction"
) -> Tensor:
    """The mean or sum of losses, or all of them; ValueError with `message` for another name."""
    if reduction == "none":
        return losses
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    raise ValueError(message.format(reduction))
