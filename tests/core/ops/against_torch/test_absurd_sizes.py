"""Sizes that no memory can hold are refused at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad

ABSURD: Final = (10**9 * 2**20, 2**62, 2**70, -(2**40), -(2**70))
# Calls that would make large results from small arguments, with an absurd number as a size or a
# count.
SIZED: Final[dict[str, Callable[[int], Any]]] = {
    "zeros": lambda n: plugrad.zeros(n),
    "empty": lambda n: plugrad.empty((2, n)),
    "full": lambda n: plugrad.full((n, n), 1.0),
    "eye": lambda n: plugrad.eye(n),
    "arange": lambda n: plugrad.arange(0, n, 1e-3),
    "linspace": lambda n: plugrad.linspace(0, 1, n),
    "tril_indices": lambda n: plugrad.tril_indices(n, n),
    "one_hot": lambda n: plugrad.nn.functional.one_hot(plugrad.tensor([0, 1]), n),
    "repeat": lambda n: plugrad.ones(3).repeat(n),
    "tile": lambda n: plugrad.ones(3).tile((n, n)),
    "tile of a block": lambda n: plugrad.ones(4, 1, 3).tile(n),
    "repeat_interleave": lambda n: plugrad.ones(3).repeat_interleave(n),
    "repeat_interleave of counts": lambda n: plugrad.repeat_interleave(plugrad.tensor([n] * 4)),
    "contiguous": lambda n: plugrad.ones(2, 1).expand(2, n).contiguous(),
    "add": lambda n: plugrad.ones(1).expand(n) + 1,
    **{
        f"pad {mode}": lambda n, mode=mode: plugrad.nn.functional.pad(  # type: ignore[misc]
            plugrad.ones(1, 2, 3), (n, 0), mode=mode
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "conv2d": lambda n: plugrad.conv2d(
        plugrad.ones(1, 1, 4, 4), plugrad.ones(1, 1, 2, 2), padding=n
    ),
    "conv_transpose2d": lambda n: plugrad.conv_transpose2d(
        plugrad.ones(1, 1, 4, 4), plugrad.ones(1, 1, 2, 2), stride=n
    ),
    "max_pool2d": lambda n: plugrad.max_pool2d(plugrad.ones(1, 1, 4, 4), n),
    "avg_pool2d": lambda n: plugrad.avg_pool2d(plugrad.ones(1, 1, 4, 4), n, padding=n // 2),
    "adaptive_avg_pool2d": lambda n: plugrad.adaptive_avg_pool2d(plugrad.ones(1, 2, 3), n),
    **{
        name: lambda n, name=name: getattr(plugrad, name)(plugrad.ones(1, 1, 2, 3), (n, 4), True)  # type: ignore[misc]
        for name in ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa")
    },
    "upsample_nearest1d": lambda n: plugrad.upsample_nearest1d(plugrad.ones(0, 1, 3), (n,)),
    **{
        name: lambda n, name=name: getattr(plugrad, name)(n)  # type: ignore[misc]
        for name in ("hann_window", "hamming_window", "bartlett_window", "kaiser_window")
    },
    **{
        f"signal.windows.{name}": lambda n, name=name: getattr(plugrad.signal.windows, name)(n)  # type: ignore[misc]
        for name in ("cosine", "exponential", "blackman")
    },
    "bincount": lambda n: plugrad.bincount(plugrad.tensor([1]), None, n),
    "combinations": lambda n: plugrad.combinations(plugrad.arange(3), n, with_replacement=True),
    "upsample of bytes": lambda n: plugrad.upsample_bicubic2d(
        plugrad.ones(1, 1, 2, 3, dtype=plugrad.uint8), (4, n), False
    ),
    "tensor_split": lambda n: plugrad.ones(4).tensor_split(n),
    "chunk": lambda n: plugrad.ones(0, 4).chunk(n),
    "randperm": lambda n: plugrad.randperm(n),
    "multinomial": lambda n: plugrad.multinomial(plugrad.ones(4), n, replacement=True),
    "resize_": lambda n: plugrad.ones(4).resize_(n),
    "as_strided": lambda n: plugrad.ones(4).as_strided((2,), (n,)),
    "new_zeros": lambda n: plugrad.ones(4).new_zeros(n),
    "rand_like": lambda n: plugrad.rand_like(plugrad.ones(1).expand(n)),
    "Linear": lambda n: plugrad.nn.Linear(n, n),
    "Embedding": lambda n: plugrad.nn.Embedding(n, 2),
    "Conv2d": lambda n: plugrad.nn.Conv2d(1, 1, n),
}


@pytest.mark.parametrize("name", SIZED)
def test_absurd_sizes_are_refused_at_once(name: str) -> None:
    for size in ABSURD:
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            SIZED[name](size)


def test_what_cannot_be_allocated_is_refused() -> None:
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        plugrad.adaptive_avg_pool2d(plugrad.ones(2, 2, 3), (10**12, 1))
    assert plugrad.diff(plugrad.ones(4), n=10**9).shape == (0,)
