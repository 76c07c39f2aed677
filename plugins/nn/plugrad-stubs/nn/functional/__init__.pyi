# Type checkers look here for `plugrad.nn.functional`. Written by tools/stubs.py.
from plugrad_nn.nn.functional import *
