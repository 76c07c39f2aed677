# For type checkers: `plugrad.nn.functions.pooling`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.pooling import *
