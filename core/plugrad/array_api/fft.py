"""The Fourier transform extension of the array API standard."""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plugrad.array_api._array import publish
from plugrad.array_api._operators import Tensor, plain
from plugrad.dtype import DType

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _called(name: str, *args: Any, **options: Any) -> Tensor:
    found: Tensor = getattr(import_module("plugrad.fft"), name)(*args, **options)
    return plain(found)


def _along_one(name: str, text: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return _called(name, x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _along_several(name: str, text: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return _called(name, x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


fft = _along_one("fft", "The discrete Fourier transform along an axis.")
ifft = _along_one("ifft", "The inverse of `fft`.")
rfft = _along_one("rfft", "The transform of real numbers: the half without negative frequencies.")
irfft = _along_one("irfft", "The inverse of `rfft`.")
hfft = _along_one("hfft", "The real transform of numbers that are given by the half of them.")
ihfft = _along_one("ihfft", "The inverse of `hfft`.")
fftn = _along_several("fftn", "The discrete Fourier transform along several axes.")
ifftn = _along_several("ifftn", "The inverse of `fftn`.")
rfftn = _along_several("rfftn", "The transform of real numbers along several axes.")
irfftn = _along_several("irfftn", "The inverse of `rfftn`.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of `fft` of `n` samples at distances of `d`.

    >>> from plugrad import array_api as xp
    >>> xp.fft.fftfreq(4, d=0.5)
    Array([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    return _called("fftfreq", n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """The frequencies of `rfft` of `n` samples at distances of `d`.

    >>> from plugrad import array_api as xp
    >>> xp.fft.rfftfreq(4)
    Array([0.0000, 0.2500, 0.5000])
    """
    return _called("rfftfreq", n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle.

    >>> from plugrad import array_api as xp
    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    Array([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _called("fftshift", x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> from plugrad import array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1])
    """
    return _called("ifftshift", x, axes)


publish(globals())
