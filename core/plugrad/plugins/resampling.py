"""The elements that each element of a resampled line reads, and their weights, for kernels of
`_resample` and `_resample_backward` that are faster than the decomposition."""

from plugrad.ops.composite.layers.taps import (
    Resampling,
    Taps,
    byte_taps,
    taps,
    transposed_taps,
)

__all__ = ["Resampling", "Taps", "byte_taps", "taps", "transposed_taps"]
