"""Switches of PyTorch's own backends, `torch.backends`: stored, and restored after a block."""
