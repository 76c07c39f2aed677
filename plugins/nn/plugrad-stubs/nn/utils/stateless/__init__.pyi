# Type checkers look here for `plugrad.nn.utils.stateless`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.stateless import *
