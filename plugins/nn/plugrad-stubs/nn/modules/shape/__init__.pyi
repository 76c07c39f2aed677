# Type checkers look here for `plugrad.nn.modules.shape`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.shape import *
