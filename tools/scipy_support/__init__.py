"""Tests how well SciPy's functions support plugrad's tensors: makes docs/scipy.md."""
