# Type checkers look here for `plugrad.nn.container`. Written by tools/stubs.py.
from plugrad_nn.nn.container import *
