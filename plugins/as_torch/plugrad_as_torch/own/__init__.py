"""What modules of PyTorch have here that needs code; each module's `__all__` is what it offers."""
