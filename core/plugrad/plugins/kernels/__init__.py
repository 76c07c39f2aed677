"""Kernels that plugins bring for backends: which are used, and who else has some."""
