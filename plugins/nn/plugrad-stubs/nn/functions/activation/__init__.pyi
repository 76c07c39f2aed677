# For type checkers: `plugrad.nn.functions.activation`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.activation import *
