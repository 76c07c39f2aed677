"""plugrad.fft: Fourier transforms under PyTorch's names.

>>> import plugrad
>>> plugrad.fft.rfft(plugrad.tensor([1.0, 2.0, 3.0, 4.0]))
tensor([10.+0.j, -2.+2.j, -2.+0.j])
"""

from __future__ import annotations

# Interpreted: it only gives other names.
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The same functions, with the types that users see.
    from plugrad import fft_fft as fft
    from plugrad import fft_fft2 as fft2
    from plugrad import fft_fftfreq as fftfreq
    from plugrad import fft_fftn as fftn
    from plugrad import fft_fftshift as fftshift
    from plugrad import fft_hfft as hfft
    from plugrad import fft_hfft2 as hfft2
    from plugrad import fft_hfftn as hfftn
    from plugrad import fft_ifft as ifft
    from plugrad import fft_ifft2 as ifft2
    from plugrad import fft_ifftn as ifftn
    from plugrad import fft_ifftshift as ifftshift
    from plugrad import fft_ihfft as ihfft
    from plugrad import fft_ihfft2 as ihfft2
    from plugrad import fft_ihfftn as ihfftn
    from plugrad import fft_irfft as irfft
    from plugrad import fft_irfft2 as irfft2
    from plugrad import fft_irfftn as irfftn
    from plugrad import fft_rfft as rfft
    from plugrad import fft_rfft2 as rfft2
    from plugrad import fft_rfftfreq as rfftfreq
    from plugrad import fft_rfftn as rfftn
else:
    from plugrad._generated.functions import fft_fft as fft
    from plugrad._generated.functions import fft_fft2 as fft2
    from plugrad._generated.functions import fft_fftfreq as fftfreq
    from plugrad._generated.functions import fft_fftn as fftn
    from plugrad._generated.functions import fft_fftshift as fftshift
    from plugrad._generated.functions import fft_hfft as hfft
    from plugrad._generated.functions import fft_hfft2 as hfft2
    from plugrad._generated.functions import fft_hfftn as hfftn
    from plugrad._generated.functions import fft_ifft as ifft
    from plugrad._generated.functions import fft_ifft2 as ifft2
    from plugrad._generated.functions import fft_ifftn as ifftn
    from plugrad._generated.functions import fft_ifftshift as ifftshift
    from plugrad._generated.functions import fft_ihfft as ihfft
    from plugrad._generated.functions import fft_ihfft2 as ihfft2
    from plugrad._generated.functions import fft_ihfftn as ihfftn
    from plugrad._generated.functions import fft_irfft as irfft
    from plugrad._generated.functions import fft_irfft2 as irfft2
    from plugrad._generated.functions import fft_irfftn as irfftn
    from plugrad._generated.functions import fft_rfft as rfft
    from plugrad._generated.functions import fft_rfft2 as rfft2
    from plugrad._generated.functions import fft_rfftfreq as rfftfreq
    from plugrad._generated.functions import fft_rfftn as rfftn

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
