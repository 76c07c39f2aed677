"""Special functions of real NumPy arrays, for backends whose arrays are there."""

from plugrad.ops.special_functions import function_named

__all__ = ["function_named"]
