# For type checkers: `plugrad.nn.modules.pooling`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.pooling import *
