# Type checkers look here for `plugrad.nn.loss`. Written by tools/stubs.py.
from plugrad_nn.nn.loss import *
