"""Joins the batch dimension with another one, so that an operator sees one dimension, and splits
the two again."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import moved
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def merged(x: Tensor, dim: int, into: int) -> Tensor:
    """The mapped dimension as the slower part of another logical one."""
    placed = moved(x, dim, into)
    sizes = sizes_of(placed)
    joint = sizes[into] * sizes[into + 1]
    return F.reshape(placed, (*sizes[:into], joint, *sizes[into + 2 :]))


def within_groups(x: Tensor, dim: int, into: int, groups: int) -> Tensor:
    """The mapped dimension in another logical one of `groups` parts, within each of these."""
    front = moved(x, dim, 0)
    sizes = sizes_of(front)
    count = sizes[into + 1] // groups
    apart = F.reshape(front, (*sizes[: into + 1], groups, count, *sizes[into + 2 :]))
    inside = moved(apart, 0, into + 1)
    joint = groups * sizes[0] * count
    return F.reshape(inside, (*sizes[1 : into + 1], joint, *sizes[into + 2 :]))


def split(x: Tensor, dim: int, batch_size: int, count: int | None = None) -> Tensor:
    """What `merged` joins, as (batch, count) from `dim` on; `count` where a batch may be empty."""
    sizes = sizes_of(x)
    rest = sizes[dim] // batch_size if count is None else count
    return F.reshape(x, (*sizes[:dim], batch_size, rest, *sizes[dim + 1 :]))


def split_groups(x: Tensor, dim: int, batch_size: int, groups: int) -> Tensor:
    """What `within_groups` joins, with the batch's dimension in front."""
    sizes = sizes_of(x)
    count = sizes[dim] // (groups * batch_size)
    apart = F.reshape(x, (*sizes[:dim], groups, batch_size, count, *sizes[dim + 1 :]))
    front = moved(apart, dim + 1, 0)
    return F.reshape(front, (batch_size, *sizes[:dim], groups * count, *sizes[dim + 1 :]))
