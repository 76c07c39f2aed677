# For type checkers: `plugrad.nn.pooling`. Written by tools/stubs.py.
from plugrad_nn.nn.pooling import *
