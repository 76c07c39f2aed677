# Type checkers look here for `plugrad.nn.convolution_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.convolution import *
