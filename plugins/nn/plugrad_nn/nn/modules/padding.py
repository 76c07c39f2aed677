"""Padding of signals, images and volumes: by numbers, reflection, repetition, in circles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.module import Module

Widths = int | Sequence[int]


class _Pad(Module):
    """The base of all paddings.

    Args:
        padding: one integer for all ends, or (left, right) of the last dimension, then of the one
            before it, and so on. Negative numbers cut off.
    """

    _spatial: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(self, padding: Widths) -> None:
        super().__init__()
        ends = 2 * self._spatial
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * ends

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Continues a signal (N, C, L) or (C, L) as a mirror at its ends would.

    >>> import plugrad
    >>> plugrad.nn.ReflectionPad1d(2)(plugrad.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _spatial = 1


class ReflectionPad2d(_ReflectionPad):
    """Continues an image (N, C, H, W) or (C, H, W) as mirrors at its ends would.

    >>> import plugrad
    >>> plugrad.nn.ReflectionPad2d(1)(plugrad.ones(1, 2, 8, 6)).shape
    plugrad.Size([1, 2, 10, 8])
    """

    _spatial = 2


class ReflectionPad3d(_ReflectionPad):
    """Continues a volume (N, C, D, H, W) or (C, D, H, W) as mirrors at its ends would.

    >>> import plugrad
    >>> plugrad.nn.ReflectionPad3d(1)(plugrad.ones(1, 2, 8, 6, 4)).shape
    plugrad.Size([1, 2, 10, 8, 6])
    """

    _spatial = 3


class _ReplicationPad(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """Repeats the first and the last element of a signal (N, C, L) or (C, L).

    >>> import plugrad
    >>> plugrad.nn.ReplicationPad1d((1, 2))(plugrad.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 2., 2., 2.]])
    """

    _spatial = 1


class ReplicationPad2d(_ReplicationPad):
    """Repeats the elements at the ends of an image (N, C, H, W) or (C, H, W).

    >>> import plugrad
    >>> plugrad.nn.ReplicationPad2d(1)(plugrad.ones(1, 2, 8, 6)).shape
    plugrad.Size([1, 2, 10, 8])
    """

    _spatial = 2


class ReplicationPad3d(_ReplicationPad):
    """Repeats the elements at the ends of a volume (N, C, D, H, W) or (C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.ReplicationPad3d(1)(plugrad.ones(1, 2, 8, 6, 4)).shape
    plugrad.Size([1, 2, 10, 8, 6])
    """

    _spatial = 3


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        least, rank = self._spatial + 1, input.dim()
        if rank not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {rank}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Continues a signal (N, C, L) or (C, L) with its other end.

    >>> import plugrad
    >>> plugrad.nn.CircularPad1d(1)(plugrad.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _spatial = 1


class CircularPad2d(_CircularPad):
    """Continues an image (N, C, H, W) or (C, H, W) with its other ends.

    >>> import plugrad
    >>> plugrad.nn.CircularPad2d(1)(plugrad.ones(1, 2, 8, 6)).shape
    plugrad.Size([1, 2, 10, 8])
    """

    _spatial = 2


class CircularPad3d(_CircularPad):
    """Continues a volume (N, C, D, H, W) or (C, D, H, W) with its other ends.

    >>> import plugrad
    >>> plugrad.nn.CircularPad3d(1)(plugrad.ones(1, 2, 8, 6, 4)).shape
    plugrad.Size([1, 2, 10, 8, 6])
    """

    _spatial = 3


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding: Widths, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Puts a number at the ends of the last dimension.

    >>> import plugrad
    >>> plugrad.nn.ConstantPad1d((1, 0), 7.0)(plugrad.tensor([[1.0, 2.0]]))
    tensor([[7., 1., 2.]])
    """

    _spatial = 1


class ConstantPad2d(_ConstantPad):
    """Puts a number at the ends of the last two dimensions.

    >>> import plugrad
    >>> plugrad.nn.ConstantPad2d(1, 3.5)(plugrad.ones(1, 2, 8, 6)).shape
    plugrad.Size([1, 2, 10, 8])
    """

    _spatial = 2


class ConstantPad3d(_ConstantPad):
    """Puts a number at the ends of the last three dimensions.

    >>> import plugrad
    >>> plugrad.nn.ConstantPad3d(1, 3.5)(plugrad.ones(1, 2, 8, 6, 4)).shape
    plugrad.Size([1, 2, 10, 8, 6])
    """

    _spatial = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Widths) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Puts zeros at the ends of the last dimension.

    >>> import plugrad
    >>> plugrad.nn.ZeroPad1d(1)(plugrad.ones(1, 2, 8)).shape
    plugrad.Size([1, 2, 10])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Puts zeros at the ends of the last two dimensions.

    >>> import plugrad
    >>> plugrad.nn.ZeroPad2d(1)(plugrad.ones(1, 2, 8, 6)).shape
    plugrad.Size([1, 2, 10, 8])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Puts zeros at the ends of the last three dimensions.

    >>> import plugrad
    >>> plugrad.nn.ZeroPad3d(1)(plugrad.ones(1, 2, 8, 6, 4)).shape
    plugrad.Size([1, 2, 10, 8, 6])
    """
