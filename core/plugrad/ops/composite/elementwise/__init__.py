"""Composite elementwise functions, for backends that lack kernels for them."""
