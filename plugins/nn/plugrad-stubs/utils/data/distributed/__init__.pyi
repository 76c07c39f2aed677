# For type checkers: `plugrad.utils.data.distributed`. Written by tools/stubs.py.
from plugrad_nn.utils.data.distributed import *
