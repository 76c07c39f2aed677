"""Padding with elements of the input: one `index_select` for each dimension that changes."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.tensor.base import sizes_of
from plugrad.tensor.creation.allocation import check_memory

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

_NAMES: Final = "WHD"


def _padding(mode: str, spatial: int) -> Callable[..., Tensor]:
    """One of the six operators: its mode, and along how many dimensions it pads."""

    def padded(self: Tensor, padding: Ints) -> Tensor:
        _check(f"{mode}_pad{spatial}d", self, padding, spatial)
        sizes = sizes_of(self)
        found: Any = self
        for step in range(spatial):
            before, behind = padding[2 * step], padding[2 * step + 1]
            dim = len(sizes) - 1 - step
            if mode == "reflection" and max(before, behind) >= sizes[dim]:
                raise RuntimeError(
                    f"Argument #{2 * step + 4}: Padding size should be less than the corresponding "
                    f"input dimension, but got: padding ({before}, {behind}) at dimension {dim} of "
                    f"input {list(sizes)}"
                )
            if before or behind:
                places = _places(mode, sizes[dim], before, behind)
                found = found.index_select(dim, index_tensor(places, self))
        return F.clone(self) if found is self else found

    return padded


def _places(mode: str, size: int, before: int, behind: int) -> Any:
    """The source position of each element."""
    wanted = np.arange(-before, size + behind)
    if mode == "replication":
        return np.clip(wanted, 0, size - 1)
    last = size - 1
    return last - np.abs(last - np.abs(wanted))


def _check(name: str, self: Tensor, padding: Ints, spatial: int) -> None:
    if len(padding) != 2 * spatial:
        found = "" if name.startswith("replication") else f", but got: {len(padding)}"
        raise RuntimeError(f"padding size is expected to be {2 * spatial}{found}")
    sizes = sizes_of(self)
    if len(sizes) - spatial not in (1, 2) or 0 in sizes[-spatial - 1 :]:
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch "
            f"size and other non-zero dimensions for input, but got: {list(sizes)}"
        )
    if self.dtype.category == BOOL:
        raise not_implemented(name, self.dtype)
    count = self.dtype.itemsize * (sizes[0] if len(sizes) > spatial else 1)
    for step in range(spatial):
        size = sizes[len(sizes) - 1 - step]
        grown = size + padding[2 * step] + padding[2 * step + 1]
        if grown < 1:
            raise RuntimeError(
                f"input ({_NAMES[step]}: {size}) is too small. Calculated output {_NAMES[step]}: "
                f"{grown}"
            )
        check_memory(48 * grown)
        count *= grown
    check_memory(count)


# Declared, because the modules import each other and mypyc needs the types.
reflection_pad1d: Callable[..., Tensor]
reflection_pad2d: Callable[..., Tensor]
reflection_pad3d: Callable[..., Tensor]
replication_pad1d: Callable[..., Tensor]
replication_pad2d: Callable[..., Tensor]
replication_pad3d: Callable[..., Tensor]
reflection_pad1d, reflection_pad2d, reflection_pad3d = (
    _padding("reflection", spatial) for spatial in (1, 2, 3)
)
replication_pad1d, replication_pad2d, replication_pad3d = (
    _padding("replication", spatial) for spatial in (1, 2, 3)
)
