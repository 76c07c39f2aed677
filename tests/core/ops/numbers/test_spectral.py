"""Fourier transforms, spectra of pieces of a signal, and windows."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import family_cases
from plugrad_cpu.kernels import spectral as kernels
from tests.core.ops.harness import OpSuite


class TestSpectral(OpSuite):
    cases = family_cases("spectral")


@pytest.fixture
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "scipy", None)
    kernels._library.cache_clear()
    yield
    kernels._library.cache_clear()


@pytest.mark.usefixtures("without_scipy")
def test_numpy_transforms_in_single_precision_where_scipy_is_missing() -> None:
    x = plugrad.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, -1.0]])
    spectrum = plugrad.fft.rfft(x.t(), dim=0)
    assert spectrum.dtype is plugrad.complex64
    assert spectrum.is_contiguous()
    expected = [[10, 0], [-2 + 2j, -2j], [-2, 0]]
    np.testing.assert_allclose(spectrum.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(plugrad.fft.irfftn(plugrad.fft.rfftn(x)).numpy(), x.numpy())


@pytest.mark.parametrize(
    ("function", "dtype", "message"),
    [
        ("fft", "float32", "^fft expects a complex output tensor, but got Float$"),
        ("rfft2", "float64", "^rfftn expects a complex output tensor, but got Double$"),
        ("irfft", "complex64", "^irfft expects a floating point output .* got ComplexFloat$"),
        ("hfftn", "int64", "^hfftn expects a floating point output tensor, but got Long$"),
    ],
)
def test_out_of_another_category_is_refused(function: str, dtype: str, message: str) -> None:
    out = plugrad.empty(0, dtype=getattr(plugrad, dtype))
    with pytest.raises(RuntimeError, match=message):
        getattr(plugrad.fft, function)(plugrad.ones(2, 2), out=out)


def test_out_may_be_more_precise() -> None:
    out = plugrad.empty(2, dtype=plugrad.complex128)
    assert plugrad.fft.fft(plugrad.tensor([1.0, 2.0]), out=out) is out
    assert out.tolist() == [3, -1]


@pytest.mark.parametrize("function", ["fft", "ifft", "rfft", "irfft", "fft2", "rfftn"])
def test_a_batch_of_nothing_has_the_shape_of_its_spectra(function: str) -> None:
    transform = getattr(plugrad.fft, function)
    one, none = plugrad.ones(1, 4, 4), plugrad.ones(0, 4, 4)
    dims = {"dim": (1, 2)} if function == "rfftn" else {}
    assert transform(none, **dims).shape == (0, *transform(one, **dims).shape[1:])
    assert transform(none, **dims).dtype is transform(one, **dims).dtype


def test_the_spectrum_of_real_numbers_begins_with_a_real_one() -> None:
    spectrum = plugrad.fft.fft(plugrad.tensor([1.0, 2.0, 3.0, 4.0]))
    assert str(spectrum) == "tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])"


def test_transforms_agree_with_their_definition() -> None:
    """The oracle is the matrix of the transform."""
    x = plugrad.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], dtype=plugrad.float64)
    n = np.arange(3)
    matrix = np.exp(-2j * np.pi * np.outer(n, n) / 3)
    np.testing.assert_allclose(plugrad.fft.fft(x).numpy(), x.numpy() @ matrix, atol=1e-12)
    inverse = x.numpy() @ matrix.conj() / 3
    np.testing.assert_allclose(plugrad.fft.ifft(x).resolve_conj().numpy(), inverse, atol=1e-12)
    root = np.sqrt(3)
    ortho = plugrad.fft.fft(x, norm="ortho").numpy()
    np.testing.assert_allclose(ortho, x.numpy() @ matrix / root, atol=1e-12)


def test_low_level_transforms_refuse_sizes_that_do_not_fit() -> None:
    x = plugrad.ones(3, dtype=plugrad.complex64)
    with pytest.raises(RuntimeError, match="expected size 2 in dimension 0 for last_dim_size=3"):
        plugrad._fft_c2r(x, (0,), 0, 3)
    with pytest.raises(RuntimeError, match=r"normalization must be 0 .*, but got 3"):
        plugrad._fft_c2c(x, (0,), 3, True)
    with pytest.raises(RuntimeError, match="Only supports complex dtypes, but found: Float"):
        plugrad._fft_c2c(plugrad.ones(2), (0,), 0, True)


def test_stft_tells_that_there_is_no_window() -> None:
    x = plugrad.ones(8)
    with pytest.warns(UserWarning, match="A window was not provided"):
        spectra = plugrad.stft(x, 4, return_complex=True)
    with pytest.warns(UserWarning, match="A window was not provided"):
        plugrad.istft(spectra, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugrad.stft(x, 4, window=plugrad.ones(4), return_complex=True)


def test_istft_gives_the_signal_back_and_zeros_behind_it() -> None:
    x = plugrad.arange(1.0, 9.0)
    window = plugrad.hann_window(4)
    spectra = x.stft(4, 1, window=window, return_complex=True)
    np.testing.assert_allclose(spectra.istft(4, 1, window=window, length=8).numpy(), x, rtol=1e-6)
    with pytest.warns(UserWarning, match="signal is shorter than the length parameter"):
        longer = spectra.istft(4, 1, window=plugrad.ones(4), length=12)
    assert longer.shape == (12,)
    assert longer[10:].tolist() == [0, 0]


def test_each_element_of_a_batch_may_have_its_window() -> None:
    x = plugrad.arange(8.0)
    windows = plugrad.stack([plugrad.ones(4), plugrad.hann_window(4)])
    both = plugrad.vmap(lambda w: plugrad.stft(x, 4, window=w, return_complex=True))(windows)
    for i in range(2):
        one = plugrad.stft(x, 4, window=windows[i], return_complex=True)
        np.testing.assert_allclose(both[i].numpy(), one.numpy(), atol=1e-6)


def test_windows_require_grad_where_asked_to() -> None:
    assert plugrad.signal.windows.hann(3, requires_grad=True).requires_grad
    assert plugrad.hann_window(3, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="general_cosine is implemented for strided"):
        plugrad.signal.windows.hann(3, layout="sparse")


@pytest.mark.parametrize("M", [True, 2.0, "2"])
@pytest.mark.parametrize(
    "name", ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hann", "kaiser"]
)
def test_the_length_of_a_window_is_an_int(name: str, M: Any) -> None:
    # Some are sums of cosines, which says so.
    said = rf"\w+\(\): argument 'M' \(position 1\) must be int, not {type(M).__name__}"
    with pytest.raises(TypeError, match=said):
        getattr(plugrad.signal.windows, name)(M)
    assert len(getattr(plugrad.signal.windows, name)(np.int64(3))) == 3
