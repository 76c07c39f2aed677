# For type checkers: `plugrad.nn.activation`. Written by tools/stubs.py.
from plugrad_nn.nn.activation import *
