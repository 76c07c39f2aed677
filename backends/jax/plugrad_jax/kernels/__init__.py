"""Raw kernels on JAX arrays, one module per operator family; each has a dict KERNELS."""
