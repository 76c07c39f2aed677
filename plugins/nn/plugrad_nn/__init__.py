"""plugrad-nn: layers, optimizers, data loading and saving for plugrad, as a plugin.

The same objects are reached as `plugrad.nn`, `plugrad.optim`, `plugrad.utils.data`, `plugrad.save`
and `plugrad.load`.
"""

from plugrad_nn import nn, optim, utils
from plugrad_nn.serialization import load, save

__all__ = ["load", "nn", "optim", "save", "utils"]
