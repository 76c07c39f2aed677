"""Measurements of plugrad beside PyTorch and the bare NumPy kernels: `python -m benchmarks`."""
