"""Numbers at equal distances and triangles' indices: what kernels of `linspace`, `logspace`,
`tril_indices` and `triu_indices` begin with."""

from plugrad.tensor.spacing import spaced, triangle

__all__ = ["spaced", "triangle"]
