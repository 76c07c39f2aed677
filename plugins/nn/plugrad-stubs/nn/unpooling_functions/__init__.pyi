# Type checkers look here for `plugrad.nn.unpooling_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.unpooling import *
