# Type checkers look here for `plugrad.nn`. Written by tools/stubs.py.
from plugrad_nn.nn import *
