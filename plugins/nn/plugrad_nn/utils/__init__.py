"""plugrad.utils: the home of plugrad.utils.data, where PyTorch has it."""

from plugrad_nn.utils import data

__all__ = ["data"]
