# For type checkers: `plugrad.nn.linear`. Written by tools/stubs.py.
from plugrad_nn.nn.linear import *
