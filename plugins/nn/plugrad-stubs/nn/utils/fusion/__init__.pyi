# Type checkers look here for `plugrad.nn.utils.fusion`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.fusion import *
