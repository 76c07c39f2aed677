# Type checkers look here for `plugrad.nn.functions.unpooling`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.unpooling import *
