"""Spectra of overlapping pieces of a signal, and the signal back from them."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import warnings
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, DType
from plugrad.ops.composite.conditions import has_values
from plugrad.ops.formulas.views import unfold_backward
from plugrad.ops.on_demand.prepare.spectral import BY_N, BY_ROOT_N, UNSCALED
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.levels import whole_batch

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is known to cause "
    "spectral leakage. Other windows such as plugrad.hann_window or plugrad.hamming_window are "
    "recommended to reduce spectral leakage.To suppress this warning and use a rectangular "
    "window, explicitly set `window=plugrad.ones(n_fft, device=<device>)`."
)
_NO_WINDOW_BACK = (
    "A window was not provided. A rectangular window will be applied.Please provide the same "
    "window used by stft to make the inversion lossless.To suppress this warning and use a "
    "rectangular window, explicitly set `window=plugrad.ones(n_fft, device=<device>)`."
)
_PAIRS = (
    "stft with return_complex=False is deprecated. In a future plugrad release, stft will return "
    "complex tensors for all inputs, and return_complex=False will raise an error.\n"
    "Note: you can still call plugrad.view_as_real on the complex output to recover the old "
    "return format."
)
_TOO_SHORT = (
    "The length of signal is shorter than the length parameter. Result is being padded with zeros "
    "in the tail. Please check your center and hop_length settings."
)

# What the squares of the windows must add up to, for each element.
_LEAST_WEIGHT = 1e-11


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> Tensor:
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        self = padded(self, n_fft // 2, pad_mode)
    return spectra_of_pieces(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


def spectra_of_pieces(
    self: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> Tensor:
    hop = n_fft >> 2 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    _check_device("stft", self, window)
    if window is None:
        warnings.warn(_NO_WINDOW, stacklevel=3)
    is_complex = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future plugrad release."
        )
    if return_complex is False:
        warnings.warn(_PAIRS, stacklevel=3)

    def refuse(what: str) -> NoReturn:
        raise RuntimeError(
            f"stft({_described(self)}, n_fft={n_fft}, hop_length={hop}, win_length={width}, "
            f"window={_described_window(window)}, normalized={_shown(normalized)}, "
            f"onesided={_shown(onesided)}, return_complex={_shown(return_complex)}, "
            f"align_to_window={_shown(align_to_window)}) : {what}"
        )

    sizes = sizes_of(self)
    if self.dtype.category < FLOATING:
        refuse("expected a tensor of floating point or complex values")
    if len(sizes) not in (1, 2):
        refuse("expected a 1D or 2D tensor")
    length = sizes[-1]
    if not 0 < n_fft <= length:
        refuse(f"expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        refuse(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        refuse(f"expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and sizes_of(window) != (width,):
        refuse(
            f"expected a 1D window tensor of size equal to win_length={width}, but got window "
            f"with size {list(sizes_of(window))}"
        )
    signal = self
    if align_to_window:
        before = (n_fft - width) // 2
        signal = _with_zeros(signal, before, n_fft - width - before)
    pieces = signal.unfold(-1, n_fft, hop)
    weights = _centered(window, width, n_fft, self.dtype, self)
    if weights is not None:
        pieces = pieces * weights
    mode = BY_ROOT_N if normalized else UNSCALED
    whole = pieces.dtype.is_complex
    if whole:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectra = F._fft_c2c(pieces, (-1,), mode, True)
    else:
        spectra = F._fft_r2c(pieces, (-1,), mode, onesided is not False)
    # In place, so that the result is not a view.
    spectra = spectra.transpose_(-2, -1)
    return F.view_as_real(spectra) if return_complex is False else spectra


def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Tensor:
    hop = n_fft >> 2 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn(_NO_WINDOW_BACK, stacklevel=2)
    _check_device("istft", self, window)

    def refuse(what: str) -> NoReturn:
        raise RuntimeError(
            f"istft({_described(self)}, n_fft={n_fft}, hop_length={hop}, win_length={width}, "
            f"window={_described_window(window)}, center={_shown(center)}, "
            f"normalized={_shown(normalized)}, onesided={_shown(onesided)}, "
            f"length={length}, return_complex={_shown(return_complex)}) {what}"
        )

    if not self.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    sizes = sizes_of(self)
    wrap_dim(-3, len(sizes) + 1)  # the dimension of frequencies, before the pair of real numbers
    if 0 in sizes:
        refuse(": input tensor cannot be empty.")
    if len(sizes) not in (2, 3):
        refuse(f": expected a tensor with 3 or 4 dimensions, but got {len(sizes) + 1}")
    frequencies, frames = sizes[-2:]
    half = frequencies != n_fft if onesided is None else onesided
    where = (
        ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft"
    )
    if half and frequencies != n_fft // 2 + 1:
        refuse(f"{where} / 2 + 1 when onesided=True, but got {frequencies}")
    if not half and frequencies != n_fft:
        refuse(f"{where} when onesided=False, but got {frequencies}")
    if not 0 < hop <= width:
        refuse(": expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        refuse(": expected 0 < win_length <= n_fft")
    if window is not None and sizes_of(window) != (width,):
        refuse(": Invalid window shape. window has to be 1D and length of `win_length`")
    real = self.dtype.to_real()
    weights = _centered(window, width, n_fft, real, self)
    spectra = self.transpose(-2, -1)
    mode = BY_ROOT_N if normalized else BY_N
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        pieces = F._fft_c2c(spectra, (-1,), mode, False)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        spectra = spectra if half else spectra.narrow(-1, 0, n_fft // 2 + 1)
        pieces = F._fft_c2r(spectra, (-1,), mode, n_fft)
    if weights is None:
        weights = F.ones((n_fft,), dtype=real, device=self.device)
    covered = n_fft + hop * (frames - 1)
    first = n_fft // 2 if center else 0
    end = covered - first if length is None else first + length
    kept = max(0, min(end, covered) - first)
    batch = sizes[:-2]
    sums = _overlapped(pieces * weights, (*batch, covered), n_fft, hop)
    squares = (weights * weights).expand((frames, n_fft))
    totals = _overlapped(squares, (covered,), n_fft, hop)
    sums, totals = sums.narrow(-1, first, kept), totals.narrow(-1, first, kept)
    if kept == 0:
        raise RuntimeError(
            f"istft: no element of the signal is left: length={length}, center={center} and "
            f"{covered} elements that the pieces cover"
        )
    if _has_gap(totals):
        refuse("window overlap add min: 1")
    signal: Tensor = sums / totals
    if end > covered:
        warnings.warn(_TOO_SHORT, stacklevel=2)
        signal = _with_zeros(signal, 0, end - covered)
    return signal


def _has_gap(totals: Tensor) -> bool:
    """Whether some element is in no window. If values are unknown, the result is nan there."""
    return has_values(totals) and bool(
        np.any(np.abs(host_array(whole_batch(totals))) < _LEAST_WEIGHT)
    )


def _overlapped(pieces: Tensor, shape: tuple[int, ...], n_fft: int, hop: int) -> Tensor:
    """The sum of pieces (*, frames, n_fft) that begin every `hop` elements of a signal."""
    return unfold_backward(pieces, shape, len(shape) - 1, n_fft, hop)


def _centered(
    window: Tensor | None, width: int, n_fft: int, dtype: DType, like: Tensor
) -> Tensor | None:
    """A window with zeros on both sides; None if there is none and all elements count."""
    if width == n_fft:
        return window
    if window is None:
        window = F.ones((width,), dtype=dtype, device=like.device)
    before = (n_fft - width) // 2
    return _with_zeros(window, before, n_fft - width - before)


def _with_zeros(x: Tensor, before: int, after: int) -> Tensor:
    """Zeros before and after the elements of the last dimension."""
    batch = sizes_of(x)[:-1]
    zeros = [F.zeros((*batch, n), dtype=x.dtype, device=x.device) for n in (before, after)]
    return F.cat([zeros[0], x, zeros[1]], -1)


def padded(x: Tensor, amount: int, mode: str) -> Tensor:
    """As many more elements on both ends of the last dimension.

    RuntimeError if the mode needs more elements than there are.
    """
    sizes = sizes_of(x)
    shape = [1] * (3 - len(sizes)) + list(sizes)
    if not sizes:
        x, sizes = x.reshape((1,)), (1,)
    length = sizes[-1]
    if mode == "constant":
        return _with_zeros(x, amount, amount)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if 0 in shape[1:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape}"
        )
    if mode == "reflect":
        if amount >= length:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({amount}, {amount}) at dimension {len(shape) - 1} of input "
                f"{shape}"
            )
        before = x.narrow(-1, 1, amount).flip(-1)
        after = x.narrow(-1, length - 1 - amount, amount).flip(-1)
    elif mode == "replicate":
        wanted = (*sizes[:-1], amount)
        before = x.narrow(-1, 0, 1).expand(wanted)
        after = x.narrow(-1, length - 1, 1).expand(wanted)
    else:
        if amount > length:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        before = x.narrow(-1, length - amount, amount)
        after = x.narrow(-1, 0, amount)
    return F.cat([before, x, after], -1)


def _check_device(name: str, signal: Tensor, window: Tensor | None) -> None:
    if window is not None and window.device is not signal.device:
        raise RuntimeError(
            f"{name} input and window must be on the same device but got self on {signal.device} "
            f"and window on {window.device}"
        )


# Arguments in error messages.


def _shown(value: bool | None) -> str:
    return "None" if value is None else str(int(value))


def _described(signal: Tensor) -> str:
    name = signal.dtype.scalar_name
    kind = f"{signal.device.type.upper()}{name}Type" if signal.dtype.is_complex else _class(name)
    return f"{kind}{list(sizes_of(signal))}"


def _class(name: str) -> str:
    return f"plugrad.{name}Tensor"


def _described_window(window: Tensor | None) -> str:
    if window is None:
        return "None"
    return f"{_class(window.dtype.scalar_name)}{{{list(sizes_of(window))}}}"
