# Type checkers look here for `plugrad.nn.flatten`. Written by tools/stubs.py.
from plugrad_nn.nn.flatten import *
