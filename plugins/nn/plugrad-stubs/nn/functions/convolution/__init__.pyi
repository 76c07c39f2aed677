# For type checkers: `plugrad.nn.functions.convolution`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.convolution import *
