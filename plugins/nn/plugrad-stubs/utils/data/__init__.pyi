# Type checkers look here for `plugrad.utils.data`. Written by tools/stubs.py.
from plugrad_nn.utils.data import *
