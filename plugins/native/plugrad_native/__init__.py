"""plugrad-native: kernels in C for contiguous float32 and float64 arrays on the CPU, as variants.

`compiled` gives the functions of the C file `src/native.c`, `variants` says which of them serves
which operator, and up to which size.
"""
