"""Switches of PyTorch's own backends, `torch.backends`: kept, and given back after a block."""
