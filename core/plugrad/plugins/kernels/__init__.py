"""Kernels that plugins provide for backends: which ones are used, and which others exist."""
