"""Tensors beside other things that hold numbers: NumPy arrays, Python values, pickles, DLPack."""
