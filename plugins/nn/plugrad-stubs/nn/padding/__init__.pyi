# Type checkers look here for `plugrad.nn.padding`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.padding import *
