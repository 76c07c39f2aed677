"""What each element of a resampled line reads, and with what weights: for kernels of `_resample`
and `_resample_backward` that are faster than the decomposition."""

from plugrad.ops.composite.layers.taps import Resampling, Taps, taps, transposed_taps

__all__ = ["Resampling", "Taps", "taps", "transposed_taps"]
