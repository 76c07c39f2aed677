"""plugrad-special: SciPy's special functions as differentiable operators of plugrad, as a plugin.

They are reached as `plugrad.special`. The operators are declared in ops/*.yaml, with the source of
each formula; kernels/ says which function of which library computes them.
"""
