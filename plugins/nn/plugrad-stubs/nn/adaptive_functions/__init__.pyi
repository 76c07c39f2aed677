# Type checkers look here for `plugrad.nn.adaptive_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.adaptive import *
