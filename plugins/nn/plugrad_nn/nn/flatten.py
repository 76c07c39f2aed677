"""Joining and splitting dimensions as modules: Flatten, Unflatten."""

from __future__ import annotations

from collections.abc import Sequence

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.module import Module


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one; by default all but the batch.

    >>> import plugrad
    >>> plugrad.nn.Flatten()(plugrad.ones(2, 3, 4)).shape
    plugrad.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return plugrad.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into dimensions of sizes `unflattened_size`; one of them may be -1.

    >>> import plugrad
    >>> plugrad.nn.Unflatten(1, (2, 3))(plugrad.ones(4, 6)).shape
    plugrad.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return plugrad.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
