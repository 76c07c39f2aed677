"""What kernels of pooling and convolution need to know that has nothing to do with arrays.

`Windows` says which elements the windows read that slide over an array, how far they reach into the
padding, and what average pooling divides by; `convolution_windows`, `transposed_sizes` and
`window_count` say how many windows there are and how large that makes the result. `on_windows`
makes kernels of functions that take `Windows`.
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
