"""Converts tensors to and from NumPy arrays, Python values, pickles and DLPack."""
