"""Special functions of real NumPy arrays, for backends with arrays on the host."""

from plugrad.ops.special_functions import function_named

__all__ = ["function_named"]
