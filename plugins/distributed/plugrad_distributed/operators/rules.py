"""Rules for results without data and for `vmap`. All ranks must map over batches of the same
size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.groups.world import group_named

__all__ = ["Rules"]


def _resized(tensor: Tensor, size: Sequence[int]) -> Tensor:
    return tensor.new_empty(tuple(size))


def _with_dim(tensor: Tensor, dim: int, length: Callable[[int], int]) -> Tensor:
    """A tensor of another length along a dimension; a tensor without dimensions counts as length
    1."""
    size = list(tensor.shape) or [1]
    dim %= len(size)
    size[dim] = length(size[dim])
    return _resized(tensor, size)


# Fakes


def _same(self: Tensor, *arguments: Any) -> Tensor:
    return plugrad.empty_like(self)


def _all_gather(self: Tensor, dim: int = 0, group: str = "") -> Tensor:
    return _with_dim(self, dim, lambda n: n * group_named(group).size())


def _reduce_scatter(self: Tensor, dim: int = 0, op: str = "sum", group: str = "") -> Tensor:
    return _with_dim(self, dim, lambda n: n // group_named(group).size())


def _all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str = "",
) -> Tensor:
    length = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    return _resized(self, (length, *self.shape[1:]))


def _gather(self: Tensor, dst: int, dim: int = 0, group: str = "") -> Tensor:
    ranks = group_named(group)
    return _with_dim(self, dim, lambda n: n * ranks.size() if ranks.rank() == dst else 0)


def _scatter(self: Tensor, src: int, dim: int, size: Sequence[int], group: str = "") -> Tensor:
    return _resized(self, size)


def _send(self: Tensor, dst: int, tag: int = 0, group: str = "") -> Tensor:
    return _resized(self, ())


def _recv(self: Tensor, src: int, size: Sequence[int], tag: int = 0, group: str = "") -> Tensor:
    return _resized(self, size)


FAKES: dict[str, Callable[..., Tensor]] = {
    "all_reduce": _same,
    "reduce": _same,
    "broadcast": _same,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all_single": _all_to_all_single,
    "gather": _gather,
    "scatter": _scatter,
    "send": _send,
    "recv": _recv,
}


# Batches. A rule gets and returns tensors with the batch dimension first.


def _elementwise(name: str) -> Callable[..., Tensor]:
    def rule(self: Tensor, *arguments: Any) -> Tensor:
        found: Tensor = getattr(plugrad.ops.distributed, name)(self, *arguments)
        return found

    return rule


def _along(name: str) -> Callable[..., Tensor]:
    """The rule of an operator with a dimension as its second argument."""

    def rule(self: Tensor, dim: int = 0, *arguments: Any) -> Tensor:
        if self.ndim == 1:
            self = self.unsqueeze(1)
        dim = dim % (self.ndim - 1) + 1
        found: Tensor = getattr(plugrad.ops.distributed, name)(self, dim, *arguments)
        return found

    return rule


def _batch_all_to_all(self: Tensor, *arguments: Any) -> Tensor:
    found: Tensor = plugrad.ops.distributed.all_to_all_single(self.movedim(0, -1), *arguments)
    return found.movedim(-1, 0)


def _batch_gather(self: Tensor, dst: int, dim: int = 0, group: str = "") -> Tensor:
    if self.ndim == 1:
        self = self.unsqueeze(1)
    found: Tensor = plugrad.ops.distributed.gather(self, dst, dim % (self.ndim - 1) + 1, group)
    return found


def _batch_scatter(
    self: Tensor, src: int, dim: int, size: Sequence[int], group: str = ""
) -> Tensor:
    size = list(size) or [1]
    found: Tensor = plugrad.ops.distributed.scatter(
        self, src, dim % len(size) + 1, [self.shape[0], *size], group
    )
    return found


def _batch_send(self: Tensor, *arguments: Any) -> Tensor:
    token: Tensor = plugrad.ops.distributed.send(self, *arguments)
    return token.expand(self.shape[0]) / self.shape[0]


def _batch_recv(
    self: Tensor, src: int, size: Sequence[int], tag: int = 0, group: str = ""
) -> Tensor:
    found: Tensor = plugrad.ops.distributed.recv(self, src, [self.shape[0], *size], tag, group)
    return found


BATCHES: dict[str, Callable[..., Tensor]] = {
    "all_reduce": _elementwise("all_reduce"),
    "reduce": _elementwise("reduce"),
    "broadcast": _elementwise("broadcast"),
    "all_gather": _along("all_gather"),
    "reduce_scatter": _along("reduce_scatter"),
    "all_to_all_single": _batch_all_to_all,
    "gather": _batch_gather,
    "scatter": _batch_scatter,
    "send": _batch_send,
    "recv": _batch_recv,
}


def _with_batch_in_front(rule: Callable[..., Tensor]) -> Callable[..., Any]:
    def run(info: Any, in_dims: Any, self: Tensor, *arguments: Any) -> tuple[Tensor, int]:
        return rule(self.movedim(in_dims[0], 0), *arguments), 0

    return run


class Rules:
    """Registers the rules; they are removed when the plugin that holds this object is unloaded."""

    def __init__(self) -> None:
        self._library = plugrad.library.Library("distributed", "FRAGMENT")
        for name, fake in FAKES.items():
            plugrad.library.register_fake(f"distributed::{name}", fake, lib=self._library)
        for name, rule in BATCHES.items():
            plugrad.library.register_vmap(
                f"distributed::{name}", _with_batch_in_front(rule), lib=self._library
            )
