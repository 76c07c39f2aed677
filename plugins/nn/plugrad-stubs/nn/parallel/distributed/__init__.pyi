# For type checkers: `plugrad.nn.parallel.distributed`. Written by tools/stubs.py.
from plugrad_nn.nn.parallel.distributed import *
