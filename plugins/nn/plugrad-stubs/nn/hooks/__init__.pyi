# Type checkers look here for `plugrad.nn.hooks`. Written by tools/stubs.py.
from plugrad_nn.nn.hooks import *
