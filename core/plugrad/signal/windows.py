"""plugrad.signal.windows: windows under PyTorch's names, in float32 or float64.

`sym=True` gives a window for filters, which is symmetric; `sym=False` one for spectra: a period of
a periodic window.

>>> import plugrad
>>> plugrad.signal.windows.bartlett(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: it is called rarely.
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack

import numpy as np

from plugrad.dtype import float32, float64, get_default_dtype
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.creation.allocation import check_memory
from plugrad.tensor.creation.from_data import tensor

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


P = ParamSpec("P")
R = TypeVar("R")


class Options(TypedDict, total=False):
    """The keywords that all windows take."""

    dtype: Any
    layout: Any
    device: Any
    requires_grad: bool


def _common(
    dtype: Any = None, layout: Any = "strided", device: Any = None, requires_grad: bool = False
) -> None:
    """The defaults of `Options`; only its signature is used."""


def _window(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: `help` and messages list the keywords behind `**options`."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    signature = signature.replace(parameters=[*own, *_COMMON])

    @functools.wraps(function)
    def window(*args: P.args, **kwargs: P.kwargs) -> R:
        for key in kwargs:
            if key not in signature.parameters:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {key!r}")
        return function(*args, **kwargs)

    shown: Any = window
    shown.__signature__ = signature
    return explains(name=function.__name__)(window)


_COMMON = [
    one.replace(kind=one.KEYWORD_ONLY) for one in inspect.signature(_common).parameters.values()
]


def _made(
    name: str,
    M: int,
    shape: Callable[[], Any],
    options: Options,
    single: float | None = 1.0,
) -> Any:
    """The tensor of `shape()`, an array of `M` numbers, after the checks that windows share.

    Args:
        single: what a window of one element is, where its formula divides by 0; else None.
    """
    dtype, layout = options.get("dtype"), options.get("layout", "strided")
    kind = get_default_dtype() if dtype is None else dtype
    if isinstance(M, bool) or not isinstance(M, (int, np.integer)):
        raise TypeError(f"{name}(): argument 'M' (position 1) must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout != "strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind is not float32 and kind is not float64:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    check_memory(int(M) * float64.itemsize)
    if M == 0 or (M == 1 and single is not None):
        numbers: Any = np.full(M, 0.0 if single is None else single)
    else:
        numbers = shape()
    return tensor(
        numbers.astype(kind.numpy),
        dtype=kind,
        device=options.get("device"),
        requires_grad=options.get("requires_grad", False),
    )


def _span(M: int, sym: bool) -> int:
    """How many steps there are in a period, or between both ends."""
    return M - 1 if sym or M <= 1 else M


@_window
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """exp(-abs(n - center) / tau) for n from 0 to `M` - 1; `center` is the middle by default.

    Raises:
        ValueError: `tau` is not positive, `center` is given for a symmetric window, `M` is
            negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """

    def shape() -> Any:
        middle = _span(M, sym) / 2 if center is None else center
        return np.exp(-np.abs(np.arange(M) - middle) / tau)

    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _made("exponential", M, shape, options, single=None)


@_window
def cosine(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """sin(pi * (n + 1 / 2) / M) for n from 0 to `M` - 1.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def shape() -> Any:
        return np.sin(np.pi * (np.arange(M) + 0.5) / (_span(M, sym) + 1))

    return _made("cosine", M, shape, options, single=None)


@_window
def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """exp(-((n - middle) / std) ** 2 / 2) for n from 0 to `M` - 1.

    Raises:
        ValueError: `std` is not positive, `M` is negative, or the dtype is neither float32 nor
            float64.

    >>> import plugrad
    >>> plugrad.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """

    def shape() -> Any:
        return np.exp(-(((np.arange(M) - _span(M, sym) / 2) / std) ** 2) / 2)

    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _made("gaussian", M, shape, options, single=None)


@_window
def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """i0(beta * sqrt(1 - t ** 2)) / i0(beta), where t goes from -1 to 1.

    i0 is the modified Bessel function of order 0.

    Raises:
        ValueError: `beta` or `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """

    def shape() -> Any:
        t = 2 * np.arange(M) / _span(M, sym) - 1
        return np.i0(beta * np.sqrt(1 - t * t)) / np.i0(beta)

    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made("kaiser", M, shape, options)


@_window
def bartlett(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """1 - abs(t), where t goes from -1 to 1: a triangle.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.bartlett(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def shape() -> Any:
        return 1 - np.abs(2 * np.arange(M) / _span(M, sym) - 1)

    return _made("bartlett", M, shape, options)


def _sum_of_cosines(M: int, coefficients: list[Any], sym: bool) -> Any:
    t = 2 * np.pi * np.arange(M) / _span(M, sym)
    total: Any = np.zeros(M)
    for order, coefficient in enumerate(coefficients):
        total = total + (-1) ** order * float(coefficient) * np.cos(order * t)
    return total


@_window
def general_cosine(
    M: Any,
    *,
    a: Any,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """a[0] - a[1] * cos(t) + a[2] * cos(2 * t) - ..., where t goes from 0 to 2 * pi.

    Raises:
        TypeError: `a` is not a list.
        ValueError: `a` is empty, `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """

    def shape() -> Any:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        coefficients = list(a)
        if not coefficients:
            raise ValueError("Coefficients cannot be empty")
        for item in coefficients:
            if not isinstance(item, (int, float, np.number, TensorBase)):
                raise TypeError(
                    "general_cosine(): argument 'a' must be list of floats, but found element of "
                    f"type {type(item).__name__}"
                )
        return _sum_of_cosines(M, coefficients, sym)

    return _made("general_cosine", M, shape, options)


@_window
def general_hamming(
    M: Any,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """alpha - (1 - alpha) * cos(t), where t goes from 0 to 2 * pi.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


@_window
def hamming(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """0.54 - 0.46 * cos(t), where t goes from 0 to 2 * pi.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


@_window
def hann(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """0.5 - 0.5 * cos(t), where t goes from 0 to 2 * pi.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


@_window
def blackman(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """0.42 - 0.5 * cos(t) + 0.08 * cos(2 * t), where t goes from 0 to 2 * pi.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.blackman(4, sym=False).sum()
    tensor(1.6800)
    """
    terms = [0.42, 0.5, 0.08]
    return _made("blackman", M, lambda: _sum_of_cosines(M, terms, sym), options)


@_window
def nuttall(
    M: int,
    *,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """The window of Nuttall with the lowest sidelobes: a sum of four cosines.

    Source: Nuttall, "Some windows with very good sidelobe behavior", 1981.

    Raises:
        ValueError: `M` is negative, or the dtype is neither float32 nor float64.

    >>> import plugrad
    >>> plugrad.signal.windows.nuttall(4, sym=False).sum()
    tensor(1.4543)
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
