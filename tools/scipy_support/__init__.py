"""How far SciPy's functions take plugrad's tensors: makes docs/scipy.md."""
