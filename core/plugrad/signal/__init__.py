"""plugrad.signal: signal processing, in addition to `plugrad.fft` and `plugrad.stft`.

>>> import plugrad
>>> plugrad.signal.windows.hann(3)
tensor([0., 1., 0.])
"""

from __future__ import annotations

# Interpreted: it only gives names.
from plugrad.signal import windows as windows

__all__ = ["windows"]
