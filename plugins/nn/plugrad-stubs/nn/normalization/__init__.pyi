# For type checkers: `plugrad.nn.normalization`. Written by tools/stubs.py.
from plugrad_nn.nn.normalization import *
