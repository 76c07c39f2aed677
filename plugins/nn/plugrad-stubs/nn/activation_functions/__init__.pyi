# Type checkers look here for `plugrad.nn.activation_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.activation import *
