# Type checkers look here for `plugrad.nn.functions.adaptive`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.adaptive import *
