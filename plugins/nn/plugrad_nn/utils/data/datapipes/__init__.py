"""plugrad.utils.data.datapipes: data sets that are chained, each reading from the one before."""

from plugrad_nn.utils.data.datapipes import iter as iter  # PyTorch's name
from plugrad_nn.utils.data.datapipes import map as map

__all__ = ["iter", "map"]
