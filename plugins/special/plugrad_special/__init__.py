"""plugrad-special: SciPy's special functions as differentiable operators of plugrad, as a plugin.

Users call them as `plugrad.special`. The operators are declared in ops/*.yaml, with the source of
each formula; kernels/ maps each to the library function that computes it.
"""
