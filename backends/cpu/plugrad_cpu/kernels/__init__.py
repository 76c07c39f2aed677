"""Raw kernels on NumPy arrays, one module per operator family; each has a dict KERNELS."""
