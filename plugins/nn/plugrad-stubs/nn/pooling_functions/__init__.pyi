# Type checkers look here for `plugrad.nn.pooling_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.pooling import *
