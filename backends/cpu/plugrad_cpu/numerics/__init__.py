"""What kernels compute with: polynomials of the error function, normal numbers."""
