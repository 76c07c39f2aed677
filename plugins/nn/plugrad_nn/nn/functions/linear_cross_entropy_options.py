"""LinearCrossEntropyOptions: how `linear_cross_entropy` may save memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import plugrad
from plugrad.dtype import DType

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES: Final = ("accurate", "balanced", "compact", "auto")
_METHOD: Final = re.compile(r"auto|aspect_ratio(:[1-9]\d*)?")


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's options for cutting the batch of `linear_cross_entropy` to save memory. plugrad
    checks them like PyTorch, and ignores them: the loss and its gradients are the same, the graph
    can always be kept, and all logits are in memory.

    Args:
        allow_retain_graph: whether a second backward may follow.
        batch_chunk_size: how many samples at a time.
        chunking_method: how to find that number: "auto", "aspect_ratio" or "aspect_ratio:N".
        acc_policy: how exact sums over pieces are: "accurate", "balanced", "compact" or "auto".
        acc_dtype: the floating point dtype of these sums.

    Raises:
        ValueError: one of them is none of these.

    >>> import plugrad
    >>> plugrad.nn.LinearCrossEntropyOptions(batch_chunk_size=128).batch_chunk_size
    128
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if method is not None and not _METHOD.fullmatch(method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        dtypes = (plugrad.float16, plugrad.bfloat16, plugrad.float32, plugrad.float64)
        if self.acc_dtype is not None and self.acc_dtype not in dtypes:
            named = ", ".join(map(repr, (None, *dtypes)))
            raise ValueError(
                f"acc_dtype must be one of {{{named}}}, got {self.acc_dtype!r}. Pass "
                "acc_dtype=None to let the op pick automatically."
            )
