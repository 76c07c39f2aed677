"""plugrad.utils: the home of plugrad.utils.data and .checkpoint, where PyTorch has them."""

from plugrad_nn.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
