"""What kernels compute with: LAPACK, polynomials of the error function, normal numbers."""
