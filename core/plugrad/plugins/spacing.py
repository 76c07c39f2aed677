"""Numbers at equal distances: what kernels of `linspace` and `logspace` begin with."""

from plugrad.tensor.spacing import spaced

__all__ = ["spaced"]
