"""Kernels that plugins provide for backends: which are used, and who else has some."""
