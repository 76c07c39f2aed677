"""Equally spaced numbers and indices of triangles, for kernels of `linspace`, `logspace`,
`tril_indices` and `triu_indices`; and the last number of a range, for `uniform_`."""

from plugrad.tensor.creation.spacing import largest_below, spaced, triangle

__all__ = ["largest_below", "spaced", "triangle"]
