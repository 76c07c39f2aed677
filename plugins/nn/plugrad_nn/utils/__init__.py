"""plugrad.utils: the home of plugrad.utils.data, .checkpoint and .hooks, where PyTorch has them."""

from plugrad_nn.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
