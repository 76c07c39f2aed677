"""The parts of PyTorch's modules that need code here; each module's `__all__` lists what it
provides."""
