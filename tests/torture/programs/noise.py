"""Noise in all of PyTorch's computations: a result that changes with it proves nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

RELATIVE = {
    torch.float64: 1e-13,
    torch.complex128: 1e-13,
    torch.float32: 2.4e-7,
    torch.complex64: 2.4e-7,
}
# What gives a tensor that has just been made from Python's numbers.
_MADE = ("lift_fresh",)


class Noise(TorchDispatchMode):
    """While it is entered, each new value of an operator is moved a little, in backward as well.

    So are zeros: ties, kinks, and what rounding alone decides come out otherwise.

    Attributes:
        overlaps: whether an operator wrote to elements that are one in memory, or looked behind
            such by as_strided: what comes of it is not defined.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.overlaps = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        results = func(*args, **(kwargs or {}))
        if name.startswith("as_strided"):
            self.overlaps = self.overlaps or _overlap(args[0])
        several = isinstance(results, (tuple, list))
        returns = func._schema.returns
        for result, told in zip(results if several else [results], returns, strict=False):
            shared = told.alias_info is not None and not told.alias_info.is_write
            if shared and name not in _MADE:
                continue
            if isinstance(result, torch.Tensor):
                self.overlaps = self.overlaps or (told.alias_info is not None and _overlap(result))
                self.move(result)
        return results

    def move(self, result: torch.Tensor) -> None:
        part = RELATIVE.get(result.dtype)
        if part is None or result.numel() == 0 or _overlap(result):
            return
        real = torch.view_as_real(result.resolve_conj()) if result.is_complex() else result
        noise = torch.rand(real.shape, generator=self.generator, dtype=torch.float64) - 0.5
        real.add_((noise * 2 * part * (real.abs() + 1.0)).to(real.dtype))


def _overlap(tensor: torch.Tensor) -> bool:
    """Whether two elements may be one in memory."""
    end = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= end:
                return True
            end += stride * (size - 1)
    return False
