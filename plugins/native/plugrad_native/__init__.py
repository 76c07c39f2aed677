"""plugrad-native: kernels in C for contiguous float32 and float64 arrays on the CPU, as variants.

`compiled` loads the functions of the C file `src/native.c`; `variants` lists which function serves
which operator, and up to which size.
"""
