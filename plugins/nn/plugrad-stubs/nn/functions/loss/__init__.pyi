# Type checkers look here for `plugrad.nn.functions.loss`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.loss import *
