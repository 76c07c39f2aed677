"""Less usual pooling: by p-norms, by windows at random distances, and back from maxima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, ClassVar

from plugrad import Tensor
from plugrad_nn.nn.functional import IntOrPair, repeated
from plugrad_nn.nn.looked_up import FunctionOf
from plugrad_nn.nn.module import Module


class _MaxUnpool(Module):
    """The base of MaxUnpool1d, 2d and 3d.

    Args:
        kernel_size, stride, padding: the pooling's.
    """

    _spatial: ClassVar[int]
    _unpool: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self._spatial)
        self.stride = repeated(kernel_size if stride is None else stride, self._spatial)
        self.padding = repeated(padding, self._spatial)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Zeros with the values where `indices` say; `output_size` where several are possible."""
        return type(self)._unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d`: zeros where no maximum was found; input (N, C, L).

    >>> import plugrad
    >>> pool = plugrad.nn.MaxPool1d(2, return_indices=True)
    >>> best, where = pool(plugrad.tensor([[1.0, 3.0, 4.0, 2.0]]))
    >>> plugrad.nn.MaxUnpool1d(2)(best, where)
    tensor([[0., 3., 4., 0.]])
    """

    _spatial = 1
    _unpool = FunctionOf("max_unpool1d")


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d`: zeros where no maximum was found; input (N, C, H, W).

    >>> import plugrad
    >>> pool = plugrad.nn.MaxPool2d(2, return_indices=True)
    >>> plugrad.nn.MaxUnpool2d(2)(*pool(plugrad.ones(1, 2, 8, 6))).shape
    plugrad.Size([1, 2, 8, 6])
    """

    _spatial = 2
    _unpool = FunctionOf("max_unpool2d")


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d`: zeros where no maximum was found; input (N, C, D, H, W).

    >>> import plugrad
    >>> pool = plugrad.nn.MaxPool3d(2, return_indices=True)
    >>> plugrad.nn.MaxUnpool3d(2)(*pool(plugrad.ones(1, 2, 8, 6, 4))).shape
    plugrad.Size([1, 2, 8, 6, 4])
    """

    _spatial = 3
    _unpool = FunctionOf("max_unpool3d")


class _LPPool(Module):
    """The base of LPPool1d, 2d and 3d.

    Args:
        norm_type: p.
        kernel_size: of the windows.
        stride: between windows; `kernel_size` by default.
        ceil_mode: let the last windows reach beyond the end.
    """

    _pool: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        norm_type: float,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        norm_type = float(self.norm_type)
        return type(self)._pool(input, norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """sum(x ** p) ** (1 / p) of each window of a signal (N, C, L).

    >>> import plugrad
    >>> plugrad.nn.LPPool1d(2, kernel_size=2)(plugrad.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    _pool = FunctionOf("lp_pool1d")


class LPPool2d(_LPPool):
    """sum(x ** p) ** (1 / p) of each window of an image (N, C, H, W).

    >>> import plugrad
    >>> plugrad.nn.LPPool2d(2, 2)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 4, 3])
    """

    _pool = FunctionOf("lp_pool2d")


class LPPool3d(_LPPool):
    """sum(x ** p) ** (1 / p) of each window of a volume (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.LPPool3d(2, 2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 4, 3, 2])
    """

    _pool = FunctionOf("lp_pool3d")


class _FractionalMaxPool(Module):
    """The base of FractionalMaxPool2d and 3d.

    Args:
        kernel_size: of the windows.
        output_size: how many windows there are along each dimension;
        output_ratio: or how many for each element of the input, between 0 and 1.
        return_indices: return as well where each value was found.

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given.

    Source: Graham, Fractional Max-Pooling, 2014.
    """

    _spatial: ClassVar[int]
    _pool: ClassVar[Callable[..., Any]]

    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: IntOrPair,
        output_size: IntOrPair | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._sizes("kernel_size", 1, kernel_size)
        if self._spatial == 3 and any(size <= 0 for size in self.kernel_size):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = (
            None if output_size is None else self._sizes("output_size", 2, output_size)
        )
        self.output_ratio = None if output_ratio is None else self._ratios(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"FractionalMaxPool{self._spatial}d requires specifying either an output size, or "
                "a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _sizes(self, name: str, position: int, value: Any) -> tuple[int, ...]:
        """One size for each dimension."""
        sizes = value if isinstance(value, (tuple, list)) else (value,) * self._spatial
        if len(sizes) != self._spatial or not all(hasattr(size, "__index__") for size in sizes):
            raise self._wrong(name, position, "int", value)
        return tuple(index(size) for size in sizes)

    def _ratios(self, value: Any) -> tuple[float, ...]:
        ratios = value if isinstance(value, (tuple, list)) else (value,) * self._spatial
        if len(ratios) != self._spatial or not all(hasattr(one, "__float__") for one in ratios):
            raise self._wrong("output_ratio", 3, "float", value)
        return tuple(float(ratio) for ratio in ratios)

    def _wrong(self, name: str, position: int, kind: str, value: Any) -> TypeError:
        given = repr(value) if isinstance(value, (tuple, list)) else type(value).__name__
        return TypeError(
            f"FractionalMaxPool{self._spatial}d(): argument '{name}' (position {position}) must be "
            f"{kind} or tuple of {self._spatial} {kind}s, not {given}"
        )

    def forward(self, input: Tensor) -> Any:
        return type(self)._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest values of windows at random distances in an image (N, C, H, W).

    >>> import plugrad
    >>> plugrad.nn.FractionalMaxPool2d(2, output_ratio=0.5)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 4, 3])
    """

    _spatial = 2
    _pool = FunctionOf("fractional_max_pool2d")


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest values of windows at random distances in a volume (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.FractionalMaxPool3d(2, output_size=2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 2, 2, 2])
    """

    _spatial = 3
    _pool = FunctionOf("fractional_max_pool3d")
