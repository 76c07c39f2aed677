"""Samples of Fourier transforms, spectra of pieces of a signal, and windows."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import M, call, fails, wrong

EVEN = T((2, 4))
TURNED = T((3, 4), strides="transposed")
COMPLEX = T((2, 3), dtype="complex128")
NOT_REAL = "expects a real.* input tensor, but got ComplexDouble"
NO_POINTS = r"Invalid number of data points \(0\) specified"
NO_DIM = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"
HALF = T((4,), dtype="float16")


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "dtypes": ("float32", "int64", "bool", "complex64"),
        "grad_dtypes": ("float64", "complex128"),
        "errors": errors,
    }
    return OpCase(op, samples, **{**settings, **options})


# Transforms of real numbers only.
REAL = {"dtypes": ("float32", "int64", "bool"), "grad_dtypes": ("float64",)}

ONE = [
    call(EVEN),
    call(M, 5, 0, "ortho"),
    call(TURNED, n=2, norm="forward"),
    call(T((3,)), 1, norm="backward"),
]
ONE_ERRORS = (
    fails(RuntimeError, NO_POINTS, EVEN, 0),
    fails(IndexError, NO_DIM, EVEN, None, 2),
    fails(IndexError, "Dimension specified as -1 but tensor has no dimensions", T(())),
    fails(RuntimeError, 'Invalid normalization mode: "half"', EVEN, None, -1, "half"),
    fails(RuntimeError, "Unsupported dtype Half", HALF),
)
SEVERAL = [
    call(EVEN),
    call(T((2, 3, 2)), (3, -1), norm="ortho"),
    call(T((2, 3, 4)), dim=(2, 0), norm="forward"),
    call(TURNED, (2,), (0,)),
]
SEVERAL_ERRORS = (
    fails(RuntimeError, "FFT dims must be unique", EVEN, None, (0, -2)),
    fails(RuntimeError, "must have the same length", EVEN, (2,), (0, 1)),
    fails(RuntimeError, "3 values but input tensor only has 2 dimensions", EVEN, (1, 2, 3)),
    fails(RuntimeError, NO_POINTS, EVEN, (2, 0)),
    fails(IndexError, NO_DIM, EVEN, None, (0, 2)),
)
SOME = "must transform at least one axis"
TWO = [call(EVEN), call(T((3, 2, 2)), (2, 3), (0, -1), "ortho")]

WINDOW = T((4,), low=0.5, high=1.5, dtype="float64")
SIGNAL = T((2, 9))
NO_FRAME = r"expected 0 < n_fft < 9, but got n_fft=0"

CASES = [
    case("fft.fft", ONE, *ONE_ERRORS),
    case("fft.ifft", ONE, *ONE_ERRORS),
    case("fft.hfft", [*ONE[:3], call(T((3,)), 3)], *ONE_ERRORS),
    case("fft.irfft", [*ONE[:3], call(T((3,)), 5)], *ONE_ERRORS),
    case("fft.rfft", ONE, fails(RuntimeError, NOT_REAL, COMPLEX), *ONE_ERRORS, **REAL),
    case("fft.ihfft", ONE, fails(RuntimeError, NOT_REAL, COMPLEX), *ONE_ERRORS, **REAL),
    case("fft.fftn", [*SEVERAL, call(T(())), call(M, dim=())], *SEVERAL_ERRORS),
    case("fft.ifftn", SEVERAL, *SEVERAL_ERRORS),
    case("fft.rfftn", SEVERAL, fails(RuntimeError, SOME, T(())), *SEVERAL_ERRORS, **REAL),
    case("fft.irfftn", SEVERAL, fails(RuntimeError, SOME, T(())), *SEVERAL_ERRORS),
    case("fft.hfftn", SEVERAL, fails(RuntimeError, SOME, T(())), *SEVERAL_ERRORS),
    case("fft.ihfftn", SEVERAL, fails(RuntimeError, SOME, T(())), *SEVERAL_ERRORS, **REAL),
    *[case(f"fft.{name}2", TWO) for name in ("fft", "ifft", "irfft", "hfft")],
    *[case(f"fft.{name}2", TWO, **REAL) for name in ("rfft", "ihfft")],
    case("_fft_c2c", [call(COMPLEX, (1, 0), 1, False)], dtypes=(), grad_dtypes=("complex128",)),
    case("_fft_r2c", [call(M, (1,), 2, True), call(M, (0, 1), 0, False)], dtypes=("float32",),
         grad_dtypes=("float64",)),
    case("_fft_c2r", [call(COMPLEX, (0, 1), 0, 4), call(COMPLEX, (1,), 2, 5)], dtypes=(),
         grad_dtypes=("complex128",)),
    case("fft.fftshift", [call(M), call(M, 0), call(M, (1, 0))]),
    case("fft.ifftshift", [call(M), call(M, -1)]),
    case(
        "fft.fftfreq",
        [call(5), call(4, 0.5), call(0), call(3, dtype=D("float64"))],
        fails(RuntimeError, "negative dimension -1", -1),
        wrong(RuntimeError, "fftfreq requires a floating point", 3, dtype=D("int64")),
        dtypes=(), gradient=False,
    ),
    case(
        "fft.rfftfreq",
        [call(5), call(4, 0.5), call(0)],
        wrong(RuntimeError, "rfftfreq requires a floating point", 3, dtype=D("int64")),
        dtypes=(), gradient=False,
    ),
    case(
        "stft",
        [
            call(SIGNAL, 4, window=WINDOW, return_complex=True),
            call(T((7,)), 4, 2, 3, T((3,)), pad_mode="constant", return_complex=False),
            call(SIGNAL, 4, 3, None, WINDOW, False, normalized=True, return_complex=True),
            call(SIGNAL, 3, 2, 2, center=False, onesided=False, return_complex=True),
            call(SIGNAL, 4, 2, 2, center=False, align_to_window=True, return_complex=True),
            call(T((7,)), 4, pad_mode="replicate", window=WINDOW, return_complex=True),
            call(T((7,)), 4, pad_mode="circular", window=WINDOW, return_complex=True),
        ],
        wrong(RuntimeError, "stft requires the return_complex parameter", SIGNAL, 4),
        wrong(RuntimeError, NO_FRAME, SIGNAL, 0, return_complex=True),
        wrong(RuntimeError, "expected hop_length > 0", SIGNAL, 4, 0, return_complex=True),
        wrong(RuntimeError, "but got win_length=5", SIGNAL, 4, 1, 5, return_complex=True),
        wrong(RuntimeError, "but got window with size", SIGNAL, 4, 1, 4, M, return_complex=True),
        wrong(RuntimeError, "expected a 1D or 2D tensor", T((1, 1, 9)), 4, return_complex=True),
        wrong(RuntimeError, "Argument #4: Padding size", T((2,)), 4, return_complex=True),
        wrong(NotImplementedError, "Unrecognised padding mode x", SIGNAL, 4, pad_mode="x",
              return_complex=True),
        wrong(RuntimeError, "should only be set when center = false", SIGNAL, 4,
              align_to_window=True, return_complex=True),
        wrong(RuntimeError, "tensor of floating point or complex values",
              T((9,), dtype="int64"), 4, return_complex=True),
        dtypes=("float32",), grad_dtypes=("float64",),
    ),
    case(
        "stft",
        [
            call(T((2, 5), dtype="complex128"), 4, window=WINDOW),
            call(T((5,), dtype="complex128"), 4, 2, return_complex=False),
        ],
        wrong(RuntimeError, "Cannot have onesided output", COMPLEX, 2, 1, onesided=True),
        dtypes=(), grad_dtypes=("complex128",),
    ),
    case(
        "istft",
        [
            call(T((2, 3, 4), dtype="complex128"), 4, window=WINDOW),
            call(T((3, 4), dtype="complex128"), 4, 2, 3, normalized=True, length=5),
            call(T((3, 3), dtype="complex128"), 4, 2, center=False, length=11),
            call(T((4, 3), dtype="complex128"), 4, window=WINDOW, onesided=False),
            call(T((4, 3), dtype="complex128"), 4, window=WINDOW, return_complex=True),
        ],
        wrong(RuntimeError, "istft requires a complex-valued input", M, 4),
        wrong(RuntimeError, "to match n_fft / 2 . 1 when onesided=True", COMPLEX, 4),
        wrong(RuntimeError, "to match n_fft when onesided=False", COMPLEX, 4, onesided=False),
        wrong(RuntimeError, "expected 0 < hop_length <= win_length", COMPLEX, 2, 3),
        wrong(RuntimeError, "expected 0 < win_length <= n_fft", COMPLEX, 2, 1, 3),
        wrong(RuntimeError, "Invalid window shape", COMPLEX, 2, 1, 2, M),
        wrong(RuntimeError, "input tensor cannot be empty", T((3, 0), dtype="complex128"), 4),
        wrong(RuntimeError, "window overlap add min: 1", COMPLEX, 2, 1,
              window=T(values=[0.0, 1.0]), center=False),
        wrong(RuntimeError, "Cannot have onesided output", COMPLEX, 2, 1, onesided=True,
              return_complex=True),
        dtypes=(), grad_dtypes=("complex128",),
    ),
    *[
        case(
            name + "_window",
            [call(0), call(1), call(5), call(4, False), call(4, periodic=True, dtype=D("float64"))],
            fails(RuntimeError, f"{name}_window requires non-negative window_length", -1),
            wrong(RuntimeError, "expects floating point dtypes", 3, dtype=D("int64")),
            dtypes=(), gradient=False,
        )
        for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
    ],
    case("hamming_window", [call(4, True, 0.3), call(4, False, 0.3, 0.2)], dtypes=(),
         gradient=False),
    case("kaiser_window", [call(4, True, 3.0), call(4, False, beta=0.0)], dtypes=(),
         gradient=False),
    *[
        case(
            "signal.windows." + name,
            [call(0), call(1), call(5), call(4, sym=False), call(3, dtype=D("float64"))],
            fails(ValueError, f"{wanted} requires non-negative window length, got M=-1", -1),
            wrong(ValueError, "expects float32 or float64 dtypes", 3, dtype=D("int64")),
            dtypes=(), gradient=False,
        )
        for name, wanted in (
            ("bartlett", "bartlett"), ("blackman", "blackman"), ("cosine", "cosine"),
            ("exponential", "exponential"), ("gaussian", "gaussian"), ("hamming", "general_cosine"),
            ("general_hamming", "general_cosine"), ("hann", "general_cosine"), ("kaiser", "kaiser"),
            ("nuttall", "general_cosine"),
        )
    ],
    case("signal.windows.general_cosine", [call(5, a=[0.5, 0.3, 0.2]), call(1, a=[1.0])],
         wrong(ValueError, "Coefficients cannot be empty", 3, a=[]),
         wrong(TypeError, "Coefficients must be a list/tuple", 3, a=1), dtypes=(), gradient=False),
    case("signal.windows.exponential", [call(4, center=1.0, tau=2.0, sym=False)],
         wrong(ValueError, "Tau must be positive, got: 0", 3, tau=0),
         wrong(ValueError, "Center must be None for symmetric", 3, center=1.0),
         dtypes=(), gradient=False),
    case("signal.windows.gaussian", [call(4, std=0.5)],
         wrong(ValueError, "Standard deviation must be positive, got: 0", 3, std=0),
         dtypes=(), gradient=False),
    case("signal.windows.kaiser", [call(4, beta=2.5), call(3, beta=0.0)],
         wrong(ValueError, "beta must be non-negative, got: -1", 3, beta=-1),
         dtypes=(), gradient=False),
]  # fmt: skip
