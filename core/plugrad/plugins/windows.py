"""The geometry of windows, without arrays, for kernels of pooling and convolution.

`Windows` describes which elements of an array the windows read, how far they reach into the
padding, and what average pooling divides by; `convolution_windows`, `transposed_sizes` and
`window_count` give the number of windows and the size of the result. `on_windows` makes kernels of
functions that take `Windows`.
"""

from __future__ import annotations

from plugrad.ops.kernels_on_windows import on_windows
from plugrad.ops.windows import (
    Windows,
    convolution_windows,
    transposed_sizes,
    window_count,
)

__all__ = [
    "Windows",
    "convolution_windows",
    "on_windows",
    "transposed_sizes",
    "window_count",
]
