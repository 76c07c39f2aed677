# For type checkers: `plugrad.nn.functions.normalization`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.normalization import *
