"""Measures plugrad against PyTorch and plain NumPy kernels: `python -m benchmarks`."""
